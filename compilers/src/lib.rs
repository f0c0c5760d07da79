//! Project files to resource specs and diagnostics, with no IO.
