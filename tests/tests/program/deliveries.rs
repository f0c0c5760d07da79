//! Messages that are due, while the program is killed between any two of: evaluation, record, creation, attempt, answer and
//! mark; and before, within and after each commit.
//!
//! A receiver has what it was sent on the disk before it answers, and tells repetitions by their keys, as receivers are to
//! do; a folder gets each message once.

use std::env;

use rand::rngs::SmallRng;
use rand::{Rng as _, SeedableRng as _};

use crate::alerts::{archived, late, project};
use crate::mails::MailServer;
use crate::receiver::{Receiver, STEPS, Step};
use crate::sandbox::Sandbox;

/// The rounds unless `WATERSHED_KILLS` sets another number.
const ROUNDS: u64 = 30;

/// Visits of a point before the one at which the program dies: a run that tells of a verdict makes a few more commits.
const VISITS: u32 = 8;

const FAILED: &str = "Late departures: 1 row";
const RECOVERED: &str = "Late departures: has recovered";

fn number(variable: &str) -> Option<u64> {
    env::var(variable).ok()?.parse().ok()
}

/// A moment at which the program is killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Death {
    /// By itself, at a named point.
    At(&'static str),
    /// By the receiver.
    By(Step),
}

impl Death {
    /// Runs the program until then. Returns true if it came to that.
    fn strikes(self, visits: u32, project: &Sandbox, receiver: &Receiver) -> bool {
        match self {
            Self::At(point) => project.dies_at(point, visits),
            Self::By(step) => receiver.kills_at(step, project),
        }
    }
}

/// The moments on the way of a message, of which each run that tells of something passes all.
fn of_messages() -> impl Iterator<Item = Death> {
    let points = watershed_delivery::CRASH_POINTS.iter();
    points.map(|point| Death::At(point)).chain(STEPS.map(Death::By))
}

fn every_moment() -> Vec<Death> {
    let commits = watershed_controller::store::CRASH_POINTS.iter();
    of_messages()
        .chain(commits.map(|point| Death::At(point)))
        .collect()
}

/// N4, N6, N7.
#[test]
fn every_due_message_arrives_once_by_its_key_and_in_order_wherever_the_program_dies() {
    let seed = number("WATERSHED_SEED").unwrap_or(24);
    println!("WATERSHED_SEED={seed}");
    let mut rng = SmallRng::seed_from_u64(seed);
    let receiver = Receiver::start();
    let project = project(&receiver);
    let moments = every_moment();
    let (mut story, mut deaths) = (Vec::new(), 0_usize);
    for round in 0..number("WATERSHED_KILLS").unwrap_or(ROUNDS) {
        let (rows, title): (&[(&str, u32)], _) = match round % 2 {
            0 => (&[("UA1", 70)], FAILED),
            _ => (&[], RECOVERED),
        };
        late(&project, rows);
        story.push(title.to_owned());
        // Nothing of this round is done yet, so it comes to this moment.
        let first = moments[usize::try_from(round).expect("a small number") % moments.len()];
        let told = format!("round {round}, seed {seed}, first {first:?}");
        assert!(first.strikes(0, &project, &receiver), "{told}");
        deaths += 1;
        for _ in 0..rng.random_range(0..=2) {
            let moment = moments[rng.random_range(0..moments.len())];
            deaths += usize::from(moment.strikes(rng.random_range(0..VISITS), &project, &receiver));
        }
        project.expect_run(0, &told);
        assert_eq!(receiver.distinct(), story, "{told}");
        assert_eq!(archived(&project), story, "{told}");
    }
    println!(
        "{deaths} deaths, {} repetitions",
        receiver.titles().len() - story.len()
    );
}

/// N6: what was due before an alert's file is deleted still arrives, and nothing after that.
#[test]
fn what_was_due_before_an_alert_is_deleted_arrives_and_nothing_after_wherever_the_program_dies() {
    for moment in of_messages() {
        let receiver = Receiver::start();
        let project = project(&receiver);
        assert!(moment.strikes(0, &project, &receiver), "{moment:?}");
        project.remove("alerts/late.yaml");
        // What it found was nowhere: nothing was due.
        let is_due = moment != Death::At(watershed_delivery::crash::EVALUATED);
        let due = if is_due { vec![FAILED] } else { Vec::new() };
        for rows in [&[("UA1", 70)][..], &[], &[("UA2", 80)]] {
            project.expect_run(0, &format!("{moment:?}"));
            assert_eq!(receiver.distinct(), due, "{moment:?}");
            assert_eq!(archived(&project), due, "{moment:?}");
            late(&project, rows);
        }
    }
}

/// N7: mail programs tell by it that a mail has come again.
#[test]
fn a_mail_that_is_sent_again_after_a_kill_has_the_id_of_the_first() {
    for (moment, sent) in [
        ("message-recorded", 1),
        ("message-begun", 1),
        ("message-answered", 2),
        ("message-marked", 1),
    ] {
        let Some(server) = MailServer::start() else {
            return;
        };
        let receiver = Receiver::start();
        let project = project(&receiver);
        server.connect(&project);
        project.edit(
            "alerts/late.yaml",
            "notify: {webhook: ops, file: archive}",
            "notify: {email: {connector: post, recipients: [ann@example.org]}}",
        );
        assert!(project.dies_at(moment, 0), "{moment}");
        project.expect_run(0, moment);
        let mails = server.mails();
        assert_eq!(mails.len(), sent, "{moment}: {mails:?}");
        for mail in &mails {
            assert_eq!(mail.header("Subject"), FAILED, "{moment}");
            assert_eq!(mail.header("To"), "ann@example.org", "{moment}");
            assert_eq!(
                mail.header("Message-ID"),
                mails[0].header("Message-ID"),
                "{moment}"
            );
        }
        assert!(
            mails[0].header("Message-ID").ends_with("@example.org>"),
            "{mails:?}"
        );
    }
}
