//! Folders that are searched for the engine's extensions.

use std::path::{Path, PathBuf};

use super::Options;

/// Folders of extensions as seen from that of the program: beside the program, and where packages have them.
const PLACES: [&str; 2] = ["extensions", "../lib/watershed/extensions"];

/// Returns the existing folders of extensions: the one in the options, then those near the program.
///
/// After them the engine looks into its own cache.
pub(super) fn folders(options: &Options) -> Vec<PathBuf> {
    let program = std::env::current_exe().ok();
    let home = program.as_deref().and_then(Path::parent);
    let near = home
        .into_iter()
        .flat_map(|home| PLACES.map(|place| home.join(place)));
    let named = options.extensions.clone();
    named
        .into_iter()
        .chain(near)
        .filter(|folder| folder.is_dir())
        .collect()
}
