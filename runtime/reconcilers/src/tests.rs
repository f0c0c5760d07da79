//! Whole projects: files in a folder, compiled, applied and built by the real parts.

mod apply;
mod dashboards;
mod once;
mod site;
mod work;
