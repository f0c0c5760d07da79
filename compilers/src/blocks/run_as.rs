//! The block `for`: the user on whose behalf rows are read.

use watershed_proto::{MapValue, Value};

use crate::{
    diagnostics::Code,
    yaml::{Data, Fields, Node, keys::blocks},
};

blocks! {
    /// Keys of the block `for`.
    pub(crate) static FOR = "for" Refused {
        "user_id": Text, "A user by identity.";
        "user_email": Text, "A user by e-mail address.";
        "attributes": Map(&Any), "Attributes of a user.";
    }
}

/// The user on whose behalf rows are read; no particular user if all fields are empty.
#[derive(Debug, Default)]
pub(crate) struct RunAs {
    pub(crate) user_id: String,
    pub(crate) user_email: String,
    /// The user's attributes, from the file or from the mock user of that id or e-mail address.
    pub(crate) attributes: Option<MapValue>,
}

/// Takes the block `for`, or else `elsewhere`, the same block at an old place; exactly one way to name the user is
/// allowed.
pub(crate) fn take(elsewhere: Option<Node>, fields: &mut Fields<'_>, users: &[MapValue]) -> RunAs {
    let own = fields.map("for").map(|(map, at)| Node::new(at, Data::Map(map)));
    let Some(node) = own.or(elsewhere) else {
        return RunAs::default();
    };
    let at = node.at;
    let Data::Map(map) = node.data else {
        return RunAs::default();
    };
    let mut block = Fields::new(map, at, fields.findings());
    let ways = ["user_id", "user_email", "attributes"];
    let said = ways.into_iter().filter(|key| block.has(key)).count();
    if said != 1 {
        let message = "\"for\" takes one of `user_id`, `user_email` and `attributes`";
        let code = if said == 0 {
            Code::MissingKey
        } else {
            Code::ConflictingKeys
        };
        block.findings().add(at, code, message);
    }
    let mut run_as = RunAs {
        user_id: block.text("user_id").unwrap_or_default(),
        user_email: block.text("user_email").unwrap_or_default(),
        attributes: block.value_map("attributes"),
    };
    block.finish(&FOR);
    if run_as.attributes.is_none() {
        run_as.attributes = mock(users, &run_as);
    }
    run_as
}

/// Returns the attributes of the mock user with the given id or e-mail address.
fn mock(users: &[MapValue], run_as: &RunAs) -> Option<MapValue> {
    let is = |user: &&MapValue, key: &str, name: &str| {
        let value = user.get(key).and_then(Value::as_str);
        !name.is_empty() && value.is_some_and(|value| value.eq_ignore_ascii_case(name))
    };
    let named = |user: &&MapValue| is(user, "email", &run_as.user_email) || is(user, "id", &run_as.user_id);
    users.iter().find(named).cloned()
}
