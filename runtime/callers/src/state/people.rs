//! Attributes of people from their last sign-in, for the policies of alerts and reports.

use sqlx::Row as _;

use super::{State, StateError};
use crate::people::Attributes;

impl State {
    /// Stores the attributes of a person who has signed in. The e-mail address must be verified.
    ///
    /// # Errors
    /// When the state can't be written.
    pub async fn see_person(
        &self,
        email: &str,
        attributes: &Attributes,
        now_ms: i64,
    ) -> Result<(), StateError> {
        let mut connection = self.connection().await;
        sqlx::query(
            "INSERT INTO people (email, attributes, seen_ms) VALUES (?, ?, ?) \
             ON CONFLICT (email) DO UPDATE SET attributes = excluded.attributes, seen_ms = excluded.seen_ms",
        )
        .bind(email)
        .bind(serde_json::to_string(attributes)?)
        .bind(now_ms)
        .execute(&mut *connection)
        .await?;
        Ok(())
    }

    /// Returns the last stored attributes of a person; none if the person never signed in.
    ///
    /// # Errors
    /// When the state can't be read.
    pub async fn person(&self, email: &str) -> Result<Option<Attributes>, StateError> {
        let mut connection = self.connection().await;
        let row = sqlx::query("SELECT attributes FROM people WHERE email = ?")
            .bind(email)
            .fetch_optional(&mut *connection)
            .await?;
        Ok(match row {
            Some(row) => Some(serde_json::from_str(row.try_get("attributes")?)?),
            None => None,
        })
    }
}
