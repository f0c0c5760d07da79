//! From a site to items that depend on one another.

use std::path::{Component, Path, PathBuf};

use watershed_controller::Error;
use watershed_controller::stategraph::{GraphContext, Renderer};
use watershed_stategraph::{Dependency, Graph, Item, Ref};

use crate::below;
use crate::spec::{Server, Site};
use crate::thing::{Process, Thing};

/// The name of the root's item.
const ROOT: &str = ".";

/// The file that a server writes its address to, in the root.
const ADDRESS: &str = ".address";

/// Renders sites.
pub(crate) struct Sites;

type Rendered = Result<(), Box<Error>>;

impl Renderer for Sites {
    type Spec = Site;
    type Value = Thing;

    fn render(&self, context: &GraphContext<Self>, intended: &mut Graph<Thing>) -> Rendered {
        let site = context.spec();
        put(
            intended,
            "folders",
            Item::new(named("folder", ROOT)?, Thing::Folder(PathBuf::from(&site.root))),
        )?;
        for folder in &site.folders {
            let item = Item::new(named("folder", folder)?, Thing::Folder(below(&site.root, folder)));
            put(intended, "folders", item.needs(in_folder(folder)?))?;
        }
        for (path, text) in &site.files {
            let (at, text) = (below(&site.root, path), text.clone());
            let item = Item::new(named("file", path)?, Thing::File { path: at, text });
            put(intended, "files", item.needs(in_folder(path)?))?;
        }
        for (path, to) in &site.links {
            let (at, to_path) = (below(&site.root, path), PathBuf::from(to));
            let mut item = Item::new(
                named("link", path)?,
                Thing::Link {
                    path: at,
                    to: to_path,
                },
            );
            item = item.needs(in_folder(path)?);
            if let Some(target) = target_of(site, path, to)? {
                item = item.needs(Dependency::on(target).describe("leads there"));
            }
            put(intended, "links", item)?;
        }
        if let Some(server) = &site.server {
            let tag = format!("{}/server", context.uid());
            put(intended, "processes", server_item(site, server, tag)?)?;
        }
        Ok(())
    }
}

fn server_item(site: &Site, server: &Server, tag: String) -> Result<Item<Thing>, Box<Error>> {
    let process = Process {
        folder: below(&site.root, &server.serves),
        settings: below(&site.root, &server.settings),
        address: below(&site.root, ADDRESS),
        tag,
    };
    let served = if server.serves.is_empty() {
        ROOT
    } else {
        &server.serves
    };
    Ok(Item::new(named("server", "main")?, Thing::Server(process))
        .needs(Dependency::on(named("folder", ROOT)?).describe("its address is written there"))
        .needs(Dependency::on(named("folder", served)?).describe("serves it"))
        .needs(
            Dependency::on(named("file", &server.settings)?)
                .recreate_when_modified()
                .describe("reads it when it starts"),
        ))
}

/// Returns the dependency of a path on the folder around it.
fn in_folder(path: &str) -> Result<Dependency, Box<Error>> {
    let parent = Path::new(path)
        .parent()
        .and_then(Path::to_str)
        .filter(|parent| !parent.is_empty());
    Ok(Dependency::on(named("folder", parent.unwrap_or(ROOT))?).describe("is in it"))
}

/// The item that a link leads to, if it is one of the site's.
fn target_of(site: &Site, link: &str, to: &str) -> Result<Option<Ref>, Box<Error>> {
    let mut path = PathBuf::from(link);
    path.pop();
    for part in Path::new(to).components() {
        match part {
            Component::ParentDir => drop(path.pop()),
            Component::Normal(name) => path.push(name),
            Component::CurDir => {}
            Component::RootDir | Component::Prefix(_) => return Ok(None),
        }
    }
    let path = path.to_string_lossy().into_owned();
    if site.files.contains_key(&path) {
        return named("file", &path).map(Some);
    }
    if site.folders.contains(&path) {
        return named("folder", &path).map(Some);
    }
    Ok(None)
}

fn named(kind: &str, name: &str) -> Result<Ref, Box<Error>> {
    let is_inside = Path::new(name)
        .components()
        .all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
    if !is_inside {
        let message = format!("\"{name}\" leads out of the site");
        return Err(Error::permanent("path-outside", message).into());
    }
    Ref::new(kind, name).map_err(|error| Error::permanent("path-name", error.to_string()).into())
}

fn put(graph: &mut Graph<Thing>, group: &str, item: Item<Thing>) -> Rendered {
    let twice = |error: watershed_stategraph::GraphError| Error::permanent("path-twice", error.to_string());
    graph.insert_at(group, item).map_err(|error| twice(error).into())
}
