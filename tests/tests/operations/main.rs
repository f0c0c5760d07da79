//! The operations of the table, asked through the socket, through an instance and of a folder at rest.
//!
//! | module | shows |
//! |---|---|
//! | `project` | a project with a resource of every kind that an operation is about |
//! | `cases` | a good request for each operation |
//! | `attacks` | requests that no program of ours sends |
//! | `codes` | one code for a mistake, whichever way it comes |
//! | `secrets` | planted secrets, which no answer has |
//! | `table` | the same answer wherever the project is, each with its schema |

mod attacks;
mod cases;
mod codes;
mod project;
mod secrets;
mod table;
