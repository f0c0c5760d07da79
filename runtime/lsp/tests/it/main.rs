//! The server as an editor meets it: messages over a pipe, a small project on disk, the real engine's parser.

mod editor;
mod features;
mod odd_input;
mod project;
