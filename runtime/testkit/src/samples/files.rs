//! A sample that writes a file under the resource's name, first aside and then in place. Each file carries the uid of
//! its owner.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use watershed_core::{Error, Outcome, Uid, Work};

use super::standin::{done, note};
use super::{Fault, Kit, SHARE, StandIn, World, finds, passes};
use watershed_controller::{Context, Reconciler, json_message};

#[derive(Serialize, Deserialize)]
struct Text(String);

#[derive(PartialEq, Serialize, Deserialize)]
struct Written(String);

json_message!(Text, format = 1);
json_message!(Written, format = 1);

#[derive(Default)]
struct Folder(BTreeMap<String, File>);

#[derive(Debug, Clone, PartialEq)]
struct File {
    of: Uid,
    text: String,
    is_whole: bool,
}

impl World for Folder {
    type Seen = BTreeMap<String, File>;

    fn look(&self) -> Self::Seen {
        self.0.clone()
    }

    fn wrong(&self) -> Option<String> {
        let half = self
            .0
            .iter()
            .find(|(path, file)| !file.is_whole && !path.starts_with('.'));
        half.map(|(path, _)| format!("\"{path}\" is half a file"))
    }
}

impl Folder {
    fn own(&self, uid: Uid) -> Option<String> {
        let mut own = self
            .0
            .iter()
            .filter(|(path, file)| file.of == uid && !path.starts_with(".new"));
        own.next().map(|(path, _)| path.clone())
    }

    /// Puts an owned file in place. A file of another owner in that place is moved aside, where its owner finds it.
    fn put(&mut self, from: &str, to: &str) {
        let Some(file) = self.0.remove(from) else { return };
        if let Some(other) = self.0.remove(to)
            && other.of != file.of
        {
            self.0.insert(format!(".aside-{}", other.of), other);
        }
        self.0.insert(to.to_owned(), file);
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Flaw {
    WritesInPlace,
    LeavesScraps,
    /// Leaves temporary files that only a destructor would remove.
    LeavesScrapsWhenItDies,
    ForgetsOldName,
    TrustsState,
}

struct Writer {
    folder: StandIn<Folder>,
    flaw: Option<Flaw>,
}

/// Guard that removes an unfinished file when dropped.
struct Scrap {
    folder: StandIn<Folder>,
    path: String,
}

impl Drop for Scrap {
    fn drop(&mut self) {
        self.folder.act(|folder| folder.0.remove(&self.path));
    }
}

impl Writer {
    async fn write(&self, context: &Context<Self>, path: &str, text: &str) -> Result<(), Error> {
        let of = context.uid();
        let scrap = match self.flaw {
            Some(Flaw::WritesInPlace) => path.to_owned(),
            Some(Flaw::LeavesScraps | Flaw::LeavesScrapsWhenItDies) => {
                format!(".new-{}-{}", context.epoch(), context.invocation())
            }
            _ => format!(".new-{of}"),
        };
        let _guard = (self.flaw == Some(Flaw::LeavesScrapsWhenItDies)).then(|| Scrap {
            folder: self.folder.clone(),
            path: scrap.clone(),
        });
        let half = File {
            of,
            text: text.to_owned(),
            is_whole: false,
        };
        self.folder
            .call(|folder| folder.0.insert(scrap.clone(), half))
            .await?;
        let whole = |folder: &mut Folder| {
            if let Some(file) = folder.0.get_mut(&scrap) {
                file.is_whole = true;
            }
            folder.put(&scrap, path);
        };
        self.folder.call(whole).await
    }
}

impl Reconciler for Writer {
    type Spec = Text;
    type State = Written;

    async fn reconcile(&self, context: Context<Self>) -> Result<Outcome, Error> {
        let (path, text) = (context.name().to_string(), &context.spec().0);
        if self.flaw == Some(Flaw::TrustsState)
            && context.state().is_some_and(|state| state.0.len() == text.len())
        {
            return done(Work::None);
        }
        let there = self.folder.call(|folder| folder.0.get(&path).cloned()).await?;
        let is_right =
            there.is_some_and(|file| file.of == context.uid() && file.text == *text && file.is_whole);
        if !is_right {
            self.write(&context, &path, text).await?;
        }
        let scrap = format!(".new-{}", context.uid());
        self.folder.call(|folder| folder.0.remove(&scrap)).await?;
        note(&context, Written(text.clone())).await?;
        done(if is_right { Work::Checked } else { Work::Built })
    }

    async fn rename(&self, context: Context<Self>) -> Result<Outcome, Error> {
        if self.flaw == Some(Flaw::ForgetsOldName) {
            return done(Work::None);
        }
        let (uid, to) = (context.uid(), context.name().to_string());
        let moved = |folder: &mut Folder| {
            if let Some(from) = folder.own(uid).filter(|from| *from != to) {
                folder.put(&from, &to);
            }
        };
        self.folder.call(moved).await?;
        done(Work::Renamed)
    }

    async fn delete(&self, context: Context<Self>) -> Result<Outcome, Error> {
        let uid = context.uid();
        let keeps_scraps = matches!(self.flaw, Some(Flaw::LeavesScraps | Flaw::LeavesScrapsWhenItDies));
        let keep = |path: &String, file: &mut File| file.of != uid || (keeps_scraps && path.starts_with('.'));
        self.folder.call(|folder| folder.0.retain(keep)).await?;
        done(Work::Dropped)
    }
}

fn kit(flaw: Option<Flaw>) -> Kit<StandIn<Folder>, Writer> {
    let writer = move |folder: &StandIn<Folder>| Writer {
        folder: folder.clone(),
        flaw,
    };
    Kit::new(StandIn::default, writer, |roll| {
        Text(roll.pick(&["one", "two", "three"]).to_string())
    })
}

#[test]
fn a_file_that_is_put_in_place_whole_is_right() {
    passes(kit(None));
}

#[test]
fn faults_of_files_are_found() {
    finds(kit(Some(Flaw::WritesInPlace)), Fault::Torn);
    finds(kit(Some(Flaw::LeavesScraps)), Fault::NotCancelSafe);
    finds(kit(Some(Flaw::LeavesScrapsWhenItDies)), Fault::NotCrashSafe);
    finds(kit(Some(Flaw::ForgetsOldName)), Fault::LosesRename);
    finds(kit(Some(Flaw::TrustsState)), Fault::StaleSpec);
}

#[test]
fn equal_seeds_are_equal_plays() {
    let play = || kit(None).steps(SHARE).find().expect("it is right");
    assert_eq!(play(), play());
}
