//! The epoch of the lake's owner: taken once, and looked at by each transaction.

use uuid::Uuid;

use super::{Lake, Stop, WITHIN, integer, run, text};
use crate::duckdb::sys::{Connection, RawError};

/// Newest epoch with its owner, and the snapshot that the transaction sees.
const LOOK: &str = "SELECT id, epoch, owner::VARCHAR FROM ducklake_current_snapshot('watershed') \
    LEFT JOIN (SELECT epoch, owner FROM _watershed.epochs ORDER BY number DESC LIMIT 1) ON true";

/// Owner of rows that bear no record.
const NOTHING: Uuid = Uuid::nil();

/// The most attempts to take the lake while others change it.
const MOST_TAKES: usize = 100;

/// A transaction that has begun under the epoch that this engine holds.
#[derive(Debug, Clone, Copy)]
pub(in crate::duckdb) struct Begun {
    /// Snapshot that the transaction sees.
    pub(super) snapshot: i64,
}

impl Begun {
    /// Returns the number of the transaction's first record. Later transactions have higher ones.
    pub(in crate::duckdb) fn first_number(self) -> i64 {
        (self.snapshot + 1) << WITHIN
    }

    /// Appends a row without a record, for the sake of the fence.
    pub(super) fn append_nothing(self, connection: &Connection, epoch: u64) -> Result<(), RawError> {
        let number = self.first_number();
        let row = format!(
            "INSERT INTO _watershed.records VALUES ('{NOTHING}', '{NOTHING}', {epoch}, NULL, {number})"
        );
        run(connection, &row).map(drop)
    }
}

/// The state of a lake as a transaction sees it.
pub(super) struct Seen {
    pub(super) snapshot: i64,
    /// Newest epoch and its owner; none before the first take.
    epoch: Option<(u64, Uuid)>,
}

impl Lake {
    /// Returns the epoch under which this engine writes; none before the first take.
    pub(in crate::duckdb) fn epoch(&self) -> Option<u64> {
        self.known().epoch
    }

    /// Returns the newest epoch when the lake was opened; none before the first take.
    pub(in crate::duckdb) fn newest_epoch(&self) -> Option<u64> {
        self.known().newest
    }

    /// Notes the newest epoch of a lake that was just opened.
    pub(super) fn note_newest_epoch(&self, connection: &Connection) -> Result<(), RawError> {
        let seen = self.look(connection)?;
        self.known().newest = seen.epoch.map(|(epoch, _)| epoch);
        Ok(())
    }

    /// Has the next change take the lake under an epoch that this engine was told.
    pub(in crate::duckdb) fn tell(&self, epoch: u64) {
        let mut known = self.known();
        (known.told, known.must_take) = (Some(epoch), true);
    }

    /// Takes the lake unless this engine holds it: under the epoch that it was told, the one that it held, or the next.
    /// The caller is the only writer of this engine.
    pub(in crate::duckdb) fn take_if_due(&self, connection: &Connection) -> Result<(), Stop> {
        let is_due = {
            let known = self.known();
            known.must_take || known.epoch.is_none()
        };
        if !is_due {
            return Ok(());
        }
        for _ in 0..MOST_TAKES {
            match self.try_to_take(connection) {
                Err(Stop::Conflict) => {}
                taken => return taken,
            }
        }
        Err(Stop::Conflict)
    }

    fn try_to_take(&self, connection: &Connection) -> Result<(), Stop> {
        run(connection, "BEGIN TRANSACTION")?;
        let taken = self.write_epoch(connection);
        let (epoch, begun) = taken.inspect_err(|_| roll_back(connection))?;
        self.settle(connection, begun)?;
        let mut known = self.known();
        known.epoch = Some(epoch);
        (known.told, known.must_take) = (None, false);
        Ok(())
    }

    /// Writes the epoch as a row and as the comment of the table to which every transaction appends, this one too.
    fn write_epoch(&self, connection: &Connection) -> Result<(u64, Begun), Stop> {
        let seen = self.look(connection)?;
        let epoch = self.epoch_to_take(&seen)?;
        let begun = Begun {
            snapshot: seen.snapshot,
        };
        let (owner, number) = (self.owner, begun.first_number());
        run(
            connection,
            &format!("INSERT INTO _watershed.epochs VALUES ({epoch}, '{owner}', {number})"),
        )?;
        run(
            connection,
            &format!("COMMENT ON TABLE _watershed.records IS 'epoch {epoch} of {owner}'"),
        )?;
        begun.append_nothing(connection, epoch)?;
        Ok((epoch, begun))
    }

    /// Returns the epoch under which the lake is to be taken.
    fn epoch_to_take(&self, seen: &Seen) -> Result<u64, Stop> {
        let known = self.known();
        let newest = seen.epoch.map_or(0, |(epoch, _)| epoch);
        match (known.told, known.epoch) {
            (Some(told), _) if told < newest => Err(Stop::Fenced),
            (Some(told), _) => Ok(told),
            // After a connection that was lost, unless somebody took the lake meanwhile.
            (None, Some(held)) => match seen.epoch {
                Some((epoch, owner)) if epoch > held || owner != self.owner => Err(Stop::Fenced),
                _ => Ok(held),
            },
            (None, None) => Ok(newest + 1),
        }
    }

    /// Begins a change in an open transaction: gives it up unless this engine holds the lake, and nobody changed it since the
    /// names were read.
    pub(in crate::duckdb) fn begin(&self, connection: &Connection) -> Result<Begun, Stop> {
        let seen = self.look(connection)?;
        self.refuse_others(&seen)?;
        match self.known_snapshot() == Some(seen.snapshot) {
            true => Ok(Begun {
                snapshot: seen.snapshot,
            }),
            false => Err(Stop::Conflict),
        }
    }

    /// Returns an error unless the newest epoch is this engine's.
    pub(super) fn refuse_others(&self, seen: &Seen) -> Result<(), Stop> {
        let held = self.known().epoch.map(|epoch| (epoch, self.owner));
        match held == seen.epoch {
            true => Ok(()),
            false => Err(Stop::Fenced),
        }
    }

    pub(super) fn look(&self, connection: &Connection) -> Result<Seen, RawError> {
        let row = run(connection, LOOK)?.into_iter().next().unwrap_or_default();
        let mut row = row.into_iter();
        let (snapshot, epoch) = (integer(row.next().as_ref()), integer(row.next().as_ref()));
        let owner = row.next().and_then(text);
        let owner = owner.and_then(|owner| Uuid::try_parse(&owner).ok());
        let epoch = epoch.and_then(|epoch| u64::try_from(epoch).ok());
        Ok(Seen {
            snapshot: snapshot.unwrap_or_default(),
            epoch: epoch.zip(owner),
        })
    }
}

/// Ends a transaction without its changes, if one is open.
pub(super) fn roll_back(connection: &Connection) {
    if let Err(raw) = run(connection, "ROLLBACK") {
        tracing::debug!(error = %raw.0, "no transaction of the lake is open");
    }
}
