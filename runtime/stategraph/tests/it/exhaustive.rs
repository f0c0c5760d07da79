//! All graphs of three items with all intents.
