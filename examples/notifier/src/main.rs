//! Writes titles that are given as arguments into a file, each as a message: stored first, tried again, in order.
//!
//! `notifier FOLDER TITLE...`. The notifier is the part that is one's own; a crash at any moment loses no message, and by its
//! key none is written twice.

use std::{env, error::Error, fs, io::Write as _, path::PathBuf, sync::Arc, time::Duration};

use watershed_controller::store::SqliteStore;
use watershed_controller::{Controller, Handle, Timestamp, Uid};
use watershed_delivery::{
    Attempt, BoxFuture, Connect, DeliveryError, Key, Message, Notification, Notifications, Notifier, Receipt,
    Receiver, Sender,
};

/// A system of one's own: a file with a line for each message.
#[derive(Clone)]
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
                let file = fs::OpenOptions::new().create(true).append(true).open(&self.0);
                let written = file.and_then(|mut file| writeln!(file, "{key} {title}"));
                written.map_err(|error| DeliveryError::transient(error.to_string()))?;
            }
            Ok(Receipt::default())
        })
    }
}

impl Connect for Lines {
    fn connect(&self, _: &Handle, to: &Receiver) -> Result<(Arc<dyn Notifier>, String), DeliveryError> {
        Ok((Arc::new(self.clone()), to.to.clone()))
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = env::args().skip(1);
    let folder = PathBuf::from(arguments.next().ok_or("a folder is missing")?);
    let builder = Controller::builder().store(SqliteStore::open(folder.join("catalog.sqlite")).await?);
    let controller = Notifications::new(Lines(folder.join("told")))
        .register(builder)
        .start()
        .await?;
    let (sender, receiver) = (Uid(uuid::Uuid::nil()), Receiver::default());
    for (order, title) in (0..).zip(arguments) {
        let sender_name = Sender {
            kind: "program".to_owned(),
            name: "notifier".to_owned(),
        };
        let key = Key::new(sender, Timestamp(0), &title, &receiver.id());
        let message = Message::one_line(key, sender_name, Timestamp::default(), title);
        let notification = Notification {
            message,
            receiver: receiver.clone(),
            sender,
            order,
        };
        // One that is there was created by an earlier run.
        controller.create(notification.declare()?).await.ok();
        controller.wait_until_idle(Duration::from_secs(60)).await?;
    }
    controller.shutdown(Duration::from_secs(10)).await?;
    Ok(())
}
