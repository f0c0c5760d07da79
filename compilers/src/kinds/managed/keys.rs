//! The keys of managed resources.

use crate::yaml::keys::blocks;

blocks! {
    /// Keys of a managed resource.
    pub(crate) static MANAGED = "managed" Refused {
        "description": Text, "What it is.";
        "stages": Texts, "The stages in their order: the first means that there is nothing, the last that it is gone for good.";
        "early": Text, "The furthest stage that is allowed before the window begins; the first.";
        "desired": Text, "The stage that is wanted.";
        "window": Block(&WINDOW), "The time in which it is wanted; always, without one.";
        "values": Map(&Any), "Values that commands and calls get unchanged.";
        "observe": Block(&LOOK), "How its stage is found out.";
        "observe_every": Duration, "How often it is looked at when nothing else asks for that; `5m`.";
        "steps": Map(&STEP), "The way to each stage: an action, or a list of them.";
        "on_events": List(&Block(&RULE)), "Events that change what is wanted.";
        "on_part_failure": Word(&MEANINGS), "What a failed part means: `abort` takes all parts down, with `continue` the others go on; `abort`.";
        "parts": List(&Block(&PART)), "Managed resources that it owns. They inherit what they do not say.";
    }

    /// Keys that each part of a managed resource accepts.
    pub(crate) static PART = "part" Refused {
        "name": Text, "The name within its owner; the resource is called `OWNER.NAME`.";
        "order": Count, "Its place: parts of equal order move together, later ones follow; 0.";
        "gates_next": Text, "The stage that it must reach before later parts go beyond their early ones.";
        "stages": Texts, "The stages in their order; those of its owner.";
        "early": Text, "The furthest stage that is allowed before the window begins, and before its turn; that of its owner.";
        "desired": Text, "The stage that is wanted; that of its owner.";
        "window": Block(&WINDOW), "The time in which it is wanted, inside its owner's; that of its owner.";
        "values": Map(&Any), "Values that commands and calls get unchanged; those of its owner.";
        "observe": Block(&LOOK), "How its stage is found out; as of its owner.";
        "observe_every": Duration, "How often it is looked at when nothing else asks for that; as its owner.";
        "steps": Map(&STEP), "The way to each stage; that of its owner.";
        "on_events": List(&Block(&RULE)), "Events that change what is wanted; those of its owner.";
        "on_part_failure": Word(&MEANINGS), "What a failed part of it means; as for its owner.";
        "parts": List(&Block(&PART)), "Managed resources that it owns; none.";
        "refs": List(&Any), "What it needs: a step upwards waits until that is ready; that of its owner.";
    }

    /// Keys of the block `window`.
    pub(crate) static WINDOW = "window" Refused {
        "start": Text, "The local time at which it begins, such as `2027-03-01T09:00`.";
        "end": Text, "The local time at which it is over.";
        "cron": Text, "When each window begins, instead of `start`: five fields (minute, hour, day, month, weekday), or a word such as `@daily`.";
        "duration": Duration, "How long each lasts, with `cron`.";
        "time_zone": Text, "The IANA time zone of the times; UTC.";
        "lead": Duration, "How long before the start it is prepared; `15m`.";
        "teardown": Duration, "How long after the end it may take to clean up; `10m`.";
    }

    /// Keys of the block `observe`.
    pub(crate) static LOOK = "observe" Refused {
        "command": Texts, "The program and its arguments; with a slash in its name it lies below the project's root.";
        "environment": Map(&Text), "Variables of the program; it gets no others but PATH, HOME and LANG.";
        "http": Block(&CALL), "An HTTP call, instead of a program.";
    }

    /// Keys that each action of a step accepts.
    pub(crate) static ACTION = "action" Refused {
        "name": Text, "The name, which no other action of the step has; that of the stage if there is no other.";
        "command": Texts, "The program and its arguments; with a slash in its name it lies below the project's root.";
        "environment": Map(&Text), "Variables of the program; it gets no others but PATH, HOME and LANG.";
        "http": Block(&CALL), "An HTTP call, instead of a program.";
        "needs": Texts, "Actions of the step that must be done before.";
        "skip_when": Map(&Any), "It is left out where `values` has all of these.";
        "optional": Bool, "Whether the step goes on without it when its attempts are used up; false.";
        "timeout": Duration, "How long one attempt may take; `5m`.";
        "attempts": Count, "Attempts in all; 5.";
        "base": Duration, "The wait before the second one, doubled for each further one; `1s`.";
        "cap": Duration, "The longest such wait; `60s`.";
    }

    /// Keys of the block `http`.
    pub(crate) static CALL = "call" Refused {
        "url": Text, "The address; `{{ .data.NAME }}` stands for what a look or a step has said.";
        "method": Text, "The method; `POST`.";
        "headers": Map(&Text), "Further headers.";
    }

    /// Keys of a rule for events.
    pub(crate) static RULE = "rule" Refused {
        "type": Text, "The type of the events; one that ends in `*` stands for all that begin so.";
        "source": Text, "Their source; any.";
        "subject": Text, "Their subject; the name of the resource.";
        "desired": Text, "The stage that is wanted from then on; without it the resource is only looked at.";
    }
}

/// The value of a step: one action, or a list of them.
const STEP: crate::yaml::Takes = {
    use crate::yaml::Takes::{Block, Either, List};
    Either(&[Block(&ACTION), List(&Block(&ACTION))])
};

/// The ways to treat the failure of a part.
pub(super) const MEANINGS: [&str; 2] = ["abort", "continue"];
