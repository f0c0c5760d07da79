//! `start`: an instance that goes on after it has converged, and reports the result of each change.

use std::collections::BTreeMap;

use watershed_api::Answer;
use watershed_api::documents::{Command, Diagnostic, Event, RunDocument, Time};
use watershed_api::request::RunRequest;

use super::Instance;
use super::converge::{Course, Ended};
use super::stop::{Control, Stop, asked};
use super::wish::Wish;
use crate::out::Out;
use crate::report::difference::Declarations;
use crate::report::freshness;
use crate::report::problems::{ReportedProblems, problems};
use crate::socket::Replies;

/// The end of a stay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stayed {
    /// The stay was stopped, and the end was reported.
    Stopped,
    /// The state folder is gone: the instance is of no use, and nothing was reported.
    Lost,
}

impl Instance {
    /// Converges, and goes on reporting events until it is stopped or has lost its state folder.
    #[doc(hidden)]
    pub async fn stay(&self, run: &RunRequest, stop: &Stop, replies: Replies) -> Stayed {
        let out = &Out::new(replies);
        let control = Control::Own(stop.clone());
        let mut course = self.begin(Command::Start, run, &control, out).await;
        let ended = tokio::select! {
            biased;
            () = self.lost() => return Stayed::Lost,
            ended = self.follow(Wish::Start, &mut course) => ended,
        };
        let ended = match ended {
            Ok(ended) => ended,
            Err(problem) => {
                out.end(Err(problem), self.outputs.secrets()).await;
                return Stayed::Stopped;
            }
        };
        let mut document = self.conclude(&mut course, ended).await;
        if ended == Ended::Idle {
            let mut problems = Problems::default();
            self.settled(&mut course, &document, &mut problems).await;
            let trouble = self.watch_trouble().map(str::to_owned);
            out.converged(document, trouble).await;
            if self.go_on(&mut course, &control, &mut problems).await == Stayed::Lost {
                return Stayed::Lost;
            }
            document = self.conclude(&mut course, Ended::Stopped).await;
        }
        self.finish(&course, &document).await;
        let ended = Ok(Answer::Run(Box::new(document)));
        out.end(ended, self.outputs.secrets()).await;
        Stayed::Stopped
    }

    /// Reports events, and each time everything has settled the problems that are new or fixed.
    async fn go_on(&self, course: &mut Course<'_>, control: &Control, problems: &mut Problems) -> Stayed {
        let mut since = None;
        course.told = ReportedProblems::default();
        self.count_anew(course);
        loop {
            // Every arm is cancel-safe: the observer keeps its place.
            let events = tokio::select! {
                biased;
                () = asked(control) => return Stayed::Stopped,
                () = self.lost() => return Stayed::Lost,
                holder = course.holder.next() => {
                    course.wait_for(holder).await;
                    continue;
                }
                events = course.observer.next() => events,
            };
            // The controller gave up: what is left is said as after a stop.
            let Some(events) = events else {
                return Stayed::Stopped;
            };
            let is_settled = course.observer.is_settled();
            if since.is_none() && (!is_settled || !events.is_empty()) {
                since = Some(Time::now());
            }
            // Told before what comes of it. All else is told when everything has settled: what fails in between may be fixed
            // by then.
            for problem in course.observer.take_problems() {
                let news = problem.is_of_removal().then(|| course.told.news(problem));
                if let Some(diagnostic) = news.flatten() {
                    course.tell(Event::Diagnostic { diagnostic }).await;
                }
            }
            for event in events {
                course.tell(event).await;
            }
            if let Some(began) = since.filter(|_| is_settled) {
                course.occasion.started_at = began;
                let document = self.document(course, Ended::Idle);
                self.settled(course, &document, problems).await;
                course.told = ReportedProblems::default();
                self.count_anew(course);
                since = None;
            }
        }
    }

    fn count_anew(&self, course: &mut Course<'_>) {
        course.observer.count_anew();
        course.declared = Declarations::from_entries(&self.entries(), course.hidden());
    }

    /// Reports the problems that are new, those that are fixed, and that everything has settled.
    async fn settled(&self, course: &mut Course<'_>, document: &RunDocument, problems: &mut Problems) {
        let (new, fixed) = problems.replace(document);
        for diagnostic in new.into_iter().filter(|found| !course.told.holds(found)) {
            course.tell(Event::Diagnostic { diagnostic }).await;
        }
        for diagnostic in fixed {
            course.tell(Event::Fixed { diagnostic }).await;
        }
        self.note_success(document.exit_code);
        let settled = Event::Settled {
            at: Time::now(),
            duration_ms: document.duration_ms,
            exit_code: document.exit_code,
            outcomes: document.summary.outcomes,
        };
        course.tell(settled).await;
    }
}

/// The current problems: findings in files, and failures of resources.
#[derive(Debug, Default)]
struct Problems(BTreeMap<Identity, Diagnostic>);

/// The identity of a problem, without its line, which moves with every line written above it.
type Identity = (String, String, String, String);

impl Problems {
    /// Replaces the problems by those of a document. Returns the new and the fixed ones.
    fn replace(&mut self, document: &RunDocument) -> (Vec<Diagnostic>, Vec<Diagnostic>) {
        let now = problems(document).into_iter();
        let now = now.map(|found| (identity(&found), found)).collect();
        let before = std::mem::replace(&mut self.0, now);
        let new = self.0.iter().filter(|(what, _)| !before.contains_key(*what));
        let new: Vec<Diagnostic> = new.map(|(_, found)| found.clone()).collect();
        // What says the same in a file of another name since now has moved with it.
        let says_same = |gone: &Diagnostic, now: &Diagnostic| {
            (&gone.code, &gone.message) == (&now.code, &now.message) && gone.path != now.path
        };
        let has_moved = |gone: &Diagnostic| new.iter().any(|now| says_same(gone, now));
        let fixed = before.into_iter().filter(|(what, _)| !self.0.contains_key(what));
        let fixed = fixed.map(|(_, found)| found).filter(|found| !has_moved(found));
        let fixed = fixed.collect();
        (new, fixed)
    }
}

fn identity(found: &Diagnostic) -> Identity {
    let resource = found.resource.as_ref().map(ToString::to_string);
    let message = match found.code == freshness::CODE {
        // It tells the age, which is another at each look.
        true => String::new(),
        false => found.message.clone(),
    };
    (
        found.path.clone(),
        found.code.clone(),
        message,
        resource.unwrap_or_default(),
    )
}
