//! Whole projects: files in a folder, compiled, applied and built by the real parts.

mod apply;
mod site;
mod work;
