//! Bursts of edits while `start` goes on and dies.
