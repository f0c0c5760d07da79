//! Classification of errors by which a container can't be started (rule W7).

use super::engine::Failed;
use crate::policy::exit::StartFailure;

/// A failed start: its class, and a message for people.
pub(super) type NotStarted = (StartFailure, String);

/// Phrases in engines' error messages about images, in lower case, with the class of failure. The first match counts.
const OF_PULLS: &[(&str, StartFailure)] = &[
    ("access denied", StartFailure::ImageForbidden),
    ("unauthorized", StartFailure::ImageForbidden),
    ("forbidden", StartFailure::ImageForbidden),
    ("denied:", StartFailure::ImageForbidden),
    ("manifest unknown", StartFailure::ImageMissing),
    ("not found", StartFailure::ImageMissing),
    ("does not exist", StartFailure::ImageMissing),
    ("no matching manifest", StartFailure::ImageMissing),
    ("invalid reference format", StartFailure::ImageMissing),
];

/// Phrases in engines' error messages about creating or starting containers, in lower case, with the class of failure.
const OF_STARTS: &[(&str, StartFailure)] = &[
    ("port is already allocated", StartFailure::PortBusy),
    ("address already in use", StartFailure::PortBusy),
    ("bind source path does not exist", StartFailure::BadFolder),
    ("working directory", StartFailure::BadFolder),
    ("chdir to cwd", StartFailure::BadFolder),
    ("executable file not found", StartFailure::ProgramMissing),
    ("no such file or directory", StartFailure::ProgramMissing),
    ("permission denied", StartFailure::NotExecutable),
    ("exec format error", StartFailure::NotExecutable),
    ("no command specified", StartFailure::BadCommand),
    ("resource temporarily unavailable", StartFailure::ForkFailed),
    ("cannot allocate memory", StartFailure::ForkFailed),
    ("no space left", StartFailure::ForkFailed),
];

/// Classifies a failed pull: the image is missing or forbidden, or the download was interrupted.
pub(super) fn of_pull(image: &str, failed: Failed) -> NotStarted {
    match failed {
        Failed::Unreachable(message) => (StartFailure::EngineUnreachable, message),
        Failed::Answered { status, message } => {
            let class = match status {
                401 | 403 => StartFailure::ImageForbidden,
                _ => find(OF_PULLS, &message).unwrap_or(match status {
                    400 | 404 => StartFailure::ImageMissing,
                    _ => StartFailure::PullInterrupted,
                }),
            };
            (class, of_image(image, &one_line(&message)))
        }
    }
}

/// Returns a message about an image that contains its name, which engines omit for network errors.
pub(super) fn of_image(image: &str, message: &str) -> String {
    match message {
        "" => format!("image \"{image}\" can't be pulled"),
        message if message.contains(image) => message.to_owned(),
        message => format!("image \"{image}\": {message}"),
    }
}

/// Classifies a failure to create or start a container.
pub(super) fn of_start(failed: Failed) -> NotStarted {
    match failed {
        Failed::Unreachable(message) => (StartFailure::EngineUnreachable, message),
        Failed::Answered { status, message } => {
            let class = find(OF_STARTS, &message).unwrap_or(match status {
                // What the engine does not understand it does not understand the next time.
                400..=499 => StartFailure::EngineRefused,
                _ => StartFailure::ForkFailed,
            });
            (class, one_line(&message))
        }
    }
}

fn find(table: &[(&str, StartFailure)], message: &str) -> Option<StartFailure> {
    let message = message.to_lowercase();
    let found = table.iter().find(|(part, _)| message.contains(part));
    found.map(|(_, class)| *class)
}

/// Returns the first line of an engine's message; further ones advise users of its command line.
fn one_line(message: &str) -> String {
    message.lines().next().unwrap_or_default().trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answered(status: u16, message: &str) -> Failed {
        Failed::Answered {
            status,
            message: message.to_owned(),
        }
    }

    /// Covers W7: permanent and transient failures of pulls.
    #[test]
    fn a_pull_fails_for_good_or_for_now() {
        use StartFailure::*;
        for (status, message, expected) in [
            (
                404,
                "manifest for api:2 not found: manifest unknown: manifest unknown",
                ImageMissing,
            ),
            (
                404,
                "pull access denied for api, repository does not exist or may require 'docker login'",
                ImageForbidden,
            ),
            (500, "unauthorized: authentication required", ImageForbidden),
            (403, "", ImageForbidden),
            (404, "", ImageMissing),
            (400, "invalid reference format", ImageMissing),
            (
                500,
                "Get \"https://registry-1.docker.io/v2/\": dial tcp: lookup registry-1.docker.io: no such host",
                PullInterrupted,
            ),
            (500, "unexpected EOF", PullInterrupted),
            (
                500,
                "toomanyrequests: You have reached your pull rate limit",
                PullInterrupted,
            ),
        ] {
            let (found, told) = of_pull("api:2", answered(status, message));
            assert_eq!(found, expected, "{message}");
            assert!(told.contains(message) && (told.contains("api")), "{told}");
        }
        assert_eq!(
            of_pull("api:2", Failed::Unreachable(String::new())).0,
            EngineUnreachable
        );
        let (_, told) = of_pull("api:2", answered(500, "unexpected EOF"));
        assert_eq!(told, "image \"api:2\": unexpected EOF");
    }

    /// Covers W7: permanent and transient failures of starts.
    #[test]
    fn a_start_fails_for_good_or_for_now() {
        use StartFailure::*;
        let runc = "failed to create shim task: OCI runtime create failed: runc create failed: unable to start container process: ";
        for (status, message, expected) in [
            (
                400,
                format!("{runc}exec: \"nope\": executable file not found in $PATH: unknown"),
                ProgramMissing,
            ),
            (
                400,
                format!("{runc}exec: \"/nope\": stat /nope: no such file or directory: unknown"),
                ProgramMissing,
            ),
            (
                400,
                format!("{runc}exec: \"/etc\": permission denied: unknown"),
                NotExecutable,
            ),
            (
                400,
                "invalid mount config for type \"bind\": bind source path does not exist: /a".into(),
                BadFolder,
            ),
            (
                400,
                "the working directory 'app' is invalid, it needs to be an absolute path".into(),
                BadFolder,
            ),
            (400, "No command specified".into(), BadCommand),
            (
                500,
                "Bind for 127.0.0.1:8080 failed: port is already allocated".into(),
                PortBusy,
            ),
            (
                500,
                "listen tcp4 127.0.0.1:80: bind: address already in use".into(),
                PortBusy,
            ),
            (400, "Minimum memory limit allowed is 6MB".into(), EngineRefused),
            (404, "network shop not found".into(), EngineRefused),
            (
                500,
                "write /var/lib/docker: no space left on device".into(),
                ForkFailed,
            ),
            (500, "something else".into(), ForkFailed),
        ] {
            assert_eq!(of_start(answered(status, &message)).0, expected, "{message}");
        }
        let advice = answered(400, "first line\n\nSee docs");
        assert_eq!(of_start(advice).1, "first line");
    }
}
