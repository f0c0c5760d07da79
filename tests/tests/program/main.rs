//! The program end to end, on real projects and as a person would call it.
//!
//! | module | shows |
//! |---|---|
//! | `exports` | answers written into files |
//! | `flights` | right answers on real data, and that only what changed is built |
//! | `alerts` | questions whose rows people are told of, and messages that arrive |
//! | `answers` | answers of single commands: places, lines, tables |
//! | `assertions` | tests of models that change while nothing else does |
//! | `assistants` | tools over HTTP and on pipes, with real clients |
//! | `attacks` | jobs and services while the program and the parent of their processes are killed |
//! | `azure` | Azure's store: read, asked for changes, written to |
//! | `backups` | everything that an environment keeps, in one file and back |
//! | `bad_data` | rows of data that can not be read |
//! | `broken` | one of each common mistake, and what is said about it |
//! | `care` | full disks, damaged files, room given back |
//! | `changes` | what each kind of change costs, and what becomes of tables |
//! | `checks` | results of checks, kept and told |
//! | `commands` | commands, exit codes, forms of output, habits |
//! | `confined` | projects that reach their own folder and their state alone |
//! | `connected` | what tests of connectors share |
//! | `containers` | jobs and services in containers, run by a real engine |
//! | `crashes` | the program dead at each named point around a commit |
//! | `database_outputs` | models whose rows are written to a table of another database |
//! | `docker` | the backend of containers alone, against a real engine |
//! | `lake_strangers` | a lake that others change, restore or forbid, and a project that two machines build in |
//! | `ducklakes` | sources in DuckLakes, as they are and as they were |
//! | `ducklake_outputs` | models whose rows are written to a DuckLake |
//! | `edit_storm` | random edits over HTTP and by hand, at once |
//! | `edited` | files that are edited over HTTP, by a process that dies or has a full disk |
//! | `editors` | the language server over its pipes, schemas, findings for other systems |
//! | `engines` | projects that another version of the engine built |
//! | `migrations` | what migrations and connectors leave in the engine, as an input of what reads it |
//! | `mails` | a server of mail |
//! | `managed` | managed resources in files: stages, parts, events, failures, kills |
//! | `mends` | mistakes are placed, and after mending only the needed ones run |
//! | `freshness` | rows that are older than they may be |
//! | `egress` | what a service refuses to connect to, told with its reason |
//! | `gcs` | Google's store by its keys of the S3 form: read, asked for changes, written to |
//! | `gits` | projects from git |
//! | `going` | a program that goes on while a test does something |
//! | `habits` | how editors save, folders that move, branches that are switched |
//! | `histories` | random edits, against an independent reference |
//! | `honest` | nothing is ignored without a word |
//! | `hooks` | statements around a build, and the order of its rows |
//! | `people` | people who sign in at a provider, or are named by a proxy |
//! | `lake` | the lake project, as its demo plays it |
//! | `lakehouse` | tables of Delta and Iceberg as sources |
//! | `live` | edits while `start` goes on |
//! | `looks` | commands that look leave everything as it is |
//! | `kills` | the program killed at random moments |
//! | `odd_files` | pipes and devices among the files, and what never returns |
//! | `operating` | explain, pause, resume, cancel, retry, stats |
//! | `pages` | the examples and commands of the guides |
//! | `processes` | the processes that a project runs beside its data |
//! | `promises` | promises of the engine, and projects on one that has none |
//! | `receiver` | a receiver of webhooks, which kills whoever sends |
//! | `refusals` | commands that can not be carried out, as text and as a document |
//! | `renames` | renames of every kind, live and between runs |
//! | `retries` | failed builds that are tried again, as a model says |
//! | `sandbox` | a project in a folder that goes away, and the program called on it |
//! | `secrets` | values that are neither printed nor stored |
//! | `secure_web` | files of web servers: certificates, redirects, busy and broken servers |
//! | `selections` | commands for some resources alone |
//! | `serving` | many projects in one process over HTTP, and the configuration that names them |
//! | `shapes` | projects as they are published, which read over HTTPS and from public buckets |
//! | `sharing` | the engine's file between the program and others |
//! | `sql_clients` | clients by the protocol of Postgres: psql, psycopg, SQLAlchemy |
//! | `stand_in` | the hosts of the internet, stood in for on loopback |
//! | `store_outputs` | models whose rows are written to a store of objects |
//! | `storms` | bursts of edits while `start` goes on and dies |
//! | `taken` | work that was taken over HTTP, while the process dies |
//! | `terminal` | tables and lists on terminals of several widths |
//! | `tokens` | tokens of a service: from a file, over HTTP, revoked, after a kill |
//! | `trash` | what nothing stands for any more: kept, listed, taken back, thrown away |
//! | `together` | several calls at a time, and calls that are stopped |
//! | `traces` | spans that a collector takes, from a request to the statements |
//! | `transitions` | what became of jobs and services, in `history` |
//! | `unit_tests` | queries on given rows |
//! | `world` | a project that changes at random, with its reference |

mod alerts;
mod answers;
mod asking;
mod assertions;
mod assistants;
mod attacks;
mod azure;
mod backups;
mod bad_data;
mod broken;
mod browsers;
mod care;
mod changes;
mod checks;
mod commands;
mod confined;
mod conforms;
mod connected;
mod containers;
mod crashes;
mod database_outputs;
mod databases;
mod deliveries;
mod docker;
mod ducklake_outputs;
mod ducklakes;
mod edit_storm;
mod edited;
mod editors;
mod egress;
mod encodings;
mod engines;
mod exports;
mod failures;
mod file_outputs;
mod flights;
mod freshness;
mod gcs;
mod gits;
mod going;
mod habits;
mod histories;
mod honest;
mod hooks;
mod incremental;
mod kills;
mod lake;
mod lake_engine;
mod lake_leaders;
mod lake_moves;
mod lake_outages;
mod lake_strangers;
mod lakehouse;
mod live;
mod looks;
mod mails;
mod managed;
mod mends;
mod meters;
mod metrics;
mod migrations;
mod news;
mod odd_files;
mod operating;
mod pages;
mod partitions;
mod people;
mod plans;
mod processes;
mod promises;
mod questions;
mod reach;
mod receiver;
mod refusals;
mod removals;
mod renames;
mod reopening;
mod retries;
mod samples;
mod sandbox;
mod secrets;
mod secure_web;
mod selections;
mod services;
mod serving;
mod shapes;
mod shared_outputs;
mod sharing;
mod sql_clients;
mod stale_input;
mod stand_in;
mod store_outputs;
mod stores;
mod storms;
mod taken;
mod terminal;
mod tls;
mod together;
mod tokens;
mod traces;
mod transitions;
mod trash;
mod trusting;
mod unit_tests;
mod workbooks;
mod world;
mod zones;
