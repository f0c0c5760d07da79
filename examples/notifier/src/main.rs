//! Writes titles that are given as arguments into a file, each as a message: stored first, tried again, in order.
//!
//! `notifier FOLDER TITLE...`. The notifier is the part that is one's own; a crash at any moment loses no message, and by its
//! key none is written twice.

use std::{env, error::Error, fs, io::Write as _, path::PathBuf, time::Duration};

use watershed_controller::{Controller, Uid, store::SqliteStore};
use watershed_delivery::notify::{Attempt, BoxFuture, DeliveryError, Notifier, Receipt};
use watershed_delivery::{Message, Notification, Notifications, Sender};

/// A system of one's own: a file with a line for each message.
struct Lines(PathBuf);

impl Notifier for Lines {
    fn deliver<'a>(
        &'a self,
        message: &'a Message,
        _: Attempt<'a>,
    ) -> BoxFuture<'a, Result<Receipt, DeliveryError>> {
        Box::pin(async move {
            let (key, title) = (message.key.as_str(), message.headline());
            // What was sent before a crash has the same key.
            if !fs::read_to_string(&self.0).is_ok_and(|told| told.contains(key)) {
                let mut file = fs::OpenOptions::new().create(true).append(true).open(&self.0)?;
                writeln!(file, "{key} {title}")?;
            }
            Ok(Receipt::default())
        })
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = env::args().skip(1);
    let folder = PathBuf::from(arguments.next().ok_or("a folder is missing")?);
    let builder = Controller::builder().store(SqliteStore::open(folder.join("catalog.sqlite")).await?);
    let notifications = Notifications::over(Lines(folder.join("told")));
    let controller = notifications.register(builder).start().await?;
    let (sender, name) = (Uid(uuid::Uuid::nil()), Sender::new("program", "notifier"));
    for (order, title) in (0..).zip(arguments) {
        let notification = Notification::one_line(sender, name.clone(), order, title);
        // One that is there was created by an earlier run.
        controller.create(notification.declare()?).await.ok();
        controller.wait_until_idle(Duration::from_secs(60)).await?;
    }
    controller.shutdown(Duration::from_secs(10)).await?;
    Ok(())
}
