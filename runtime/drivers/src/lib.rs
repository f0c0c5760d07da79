//! The outside world behind traits: the DuckDB engine and project files.
