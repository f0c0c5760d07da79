//! The keys that resources of all kinds take.

use crate::yaml::keys::blocks;

blocks! {
    /// Keys of every resource's file.
    pub(crate) static COMMON = "resource" Refused {
        "type": Word(&crate::resource::WORDS), "The kind of the resource.";
        "kind": Word(&crate::resource::WORDS), "The kind of the resource." => "type";
        "name": Text, "The resource's name, if it is not the file's.";
        "namespace": Text, "A word before the name: the resource is called `namespace:name`.";
        "version": Count, "The version of the format of the file; metrics views of version 0 bring an explore.";
        "display_name": Text, "The name for people.";
        "refs": List(&Any), "Resources that are read, beside those that are found: `name`, `kind/name`, or `{type, name}`.";
        "tags": Texts, "Words to find the resource by.";
        "parser": Block(&PARSER), "How the file is read.";
        "environment_overrides": Map(&Any), "Keys that count in one environment only, by its name.";
        "env": Map(&Any), "Keys that count in one environment only." => "environment_overrides";
        "dev": Any, "Keys that count in the environment `dev` only.";
        "prod": Any, "Keys that count in the environment `prod` only.";
    }

    /// Keys of the block `parser`.
    pub(crate) static PARSER = "parser" Refused {
        "templating": Bool, "Whether templates and annotations are read.";
    }
}
