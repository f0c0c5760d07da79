//! The operations of the table, asked through the socket, through an instance and of a folder at rest.
//!
//! | module | shows |
//! |---|---|
//! | `pages` | lists by the page, and bounds that are refused |
//! | `project` | a project with a resource of every kind that an operation is about |
//! | `believers` | readers of the stream to whom everything happens |
//! | `cases` | a good request for each operation |
//! | `attacks` | requests that no program of ours sends |
//! | `access` | tokens, the audit log, and keys of calls |
//! | `clients` | clients that generators make, and those that people use |
//! | `client` | a client of HTTP that sends what it is told to |
//! | `codes` | one code for a mistake, whichever way it comes |
//! | `edits` | files that callers write, delete and rename |
//! | `editor` | the language server over a WebSocket |
//! | `exports` | files of reports, by signed addresses and by role |
//! | `events` | events of others, and what programs write |
//! | `fence` | random statements of callers, against a referee |
//! | `files` | files of the project over HTTP |
//! | `forms` | forms of rows over HTTP |
//! | `doors` | strangers at the door of the service over HTTP |
//! | `http` | the same over HTTP: documents, requests that survive, attacks |
//! | `network` | certificates, sockets in files, and proxies |
//! | `policies` | what policies let callers see, over HTTP as with `--as` |
//! | `questions` | SQL of callers over HTTP: rows, the fence, slots |
//! | `roles` | what each role may do and see over HTTP |
//! | `scopes` | narrowed callers, and the history of who asked |
//! | `secrets` | planted secrets, which no answer has |
//! | `socket` | a WebSocket, frame by frame |
//! | `stream` | the stream of changes, which misses nothing |
//! | `table` | the same answer wherever the project is, each with its schema |
//! | `versions` | the API as its first version began |

mod access;
mod attacks;
mod believers;
mod boards;
mod cases;
mod client;
mod clients;
mod codes;
mod doors;
mod editor;
mod edits;
mod events;
mod exports;
mod fence;
mod files;
mod forms;
mod http;
mod network;
mod pages;
mod permits;
mod policies;
mod project;
mod questions;
mod roles;
mod scopes;
mod secrets;
mod socket;
mod stream;
mod table;
mod versions;
