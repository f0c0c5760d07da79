//! Prompts: texts of ours to begin with. An author's words stand in none of them.

use rmcp::model::{GetPromptResult, Prompt, PromptArgument, PromptMessage, Role};
use serde_json::{Map, Value};

struct Text {
    name: &'static str,
    description: &'static str,
    /// Argument, with what it means; none if the prompt takes nothing.
    argument: Option<(&'static str, &'static str)>,
    text: &'static str,
}

const PROMPTS: [Text; 4] = [
    Text {
        name: "why_is_it_failing",
        description: "Finds why resources of the project fail, and mends the root cause.",
        argument: None,
        text: "List what failed with `list_resources` and {\"health\": [\"failed\"]}. Ask `explain` of each that nothing blocks: \
               that is the root cause. Read its file, try a mended text by `check_files`, and write it by `write_file` once I agree. \
               Then follow `get_request` until nothing fails.",
    },
    Text {
        name: "explore_metric",
        description: "Looks at a metrics view and answers a question from it.",
        argument: Some(("question", "The question, in words.")),
        text: "Answer from the project's metrics: `list_metrics`, then `describe_metrics` of the view that fits, then `query_metrics` \
               in the form of its examples. Say which view, measures and range of time the numbers are of.",
    },
    Text {
        name: "add_model",
        description: "Adds a model to the project.",
        argument: Some(("purpose", "What the model is for, in words.")),
        text: "Add a model: one file of SQL below `models/` with a SELECT that reads other resources by their names. Look at the \
               columns of what it reads by `describe_resource`, try the text by `check_files`, then write it by `write_file` and \
               follow `get_request`.",
    },
    Text {
        name: "review_changes",
        description: "Tells what an edit of the project's files would do, before it is done.",
        argument: None,
        text: "Tell what would be built, renamed or dropped by `plan`, and which mistakes `diagnostics` has. Change nothing.",
    },
];

/// Returns all prompts.
pub(super) fn list() -> Vec<Prompt> {
    let argument = |(name, about): (&str, &str)| {
        vec![
            PromptArgument::new(name)
                .with_description(about)
                .with_required(false),
        ]
    };
    PROMPTS
        .iter()
        .map(|one| Prompt::new(one.name, Some(one.description), one.argument.map(argument)))
        .collect()
}

/// Returns a prompt's text, with what the person added; none for an unknown name.
pub(super) fn get(name: &str, arguments: &Map<String, Value>) -> Option<GetPromptResult> {
    let one = PROMPTS.iter().find(|one| one.name == name)?;
    let added = one.argument.and_then(|(name, _)| arguments.get(name)?.as_str());
    let text = match added {
        Some(added) => format!("{}\n\n{added}", one.text),
        None => one.text.to_owned(),
    };
    let message = PromptMessage::new_text(Role::User, text);
    Some(GetPromptResult::new(vec![message]).with_description(one.description))
}
