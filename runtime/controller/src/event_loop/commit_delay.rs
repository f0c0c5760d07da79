//! Letting a commit wait for those who are about to call again.
//!
//! A caller that awaits each of its writes comes back as soon as it is answered. If the next commit began right then,
//! it would hold what others have sent meanwhile, and those who were just answered would wait for the one after: each
//! commit half full, for ever, and each as dear as a full one. So when a commit that took its time has been answered,
//! the next one waits for as many calls as were answered, as long as they keep coming; other tasks run meanwhile. Who
//! calls from further away comes too late for that and costs the others a few microseconds, once.

/// So many turns in which nobody calls are the end of the wait. One would do if all callers ran on the loop's thread;
/// another thread may have taken some of them over.
const PATIENCE: u32 = 64;

/// A commit of so many rows gains little from further ones, and while it is written the loop takes up the next.
const ENOUGH: usize = 256;

/// Who may be about to call.
#[derive(Debug, Default)]
pub(crate) struct Gathering {
    /// Whether the commit under way takes its time; one that is over at once is not worth a wait.
    is_slow: bool,
    /// Those who were answered with the last commit and have not called since.
    expected: usize,
    patience: u32,
}

impl Gathering {
    /// A commit was begun and is not over.
    pub(crate) fn begun(&mut self) {
        self.is_slow = true;
    }

    /// The commit is over, and so many calls are answered with it.
    pub(crate) fn committed(&mut self, answers: usize) {
        if std::mem::take(&mut self.is_slow) {
            self.expected = answers;
            self.patience = PATIENCE;
        }
    }

    /// Somebody has called.
    pub(crate) fn called(&mut self) {
        self.expected = self.expected.saturating_sub(1);
        self.patience = PATIENCE;
    }

    /// Whether a commit of so many rows should wait for another turn; it counts as one.
    pub(crate) fn waits(&mut self, rows: usize) -> bool {
        let waits = self.expected > 0 && (1..ENOUGH).contains(&rows);
        if waits {
            self.patience -= 1;
            if self.patience == 0 {
                self.expected = 0;
            }
        }
        waits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(answers: usize) -> Gathering {
        let mut gathering = Gathering::default();
        gathering.begun();
        gathering.committed(answers);
        gathering
    }

    #[test]
    fn a_commit_waits_until_as_many_have_called_as_were_answered() {
        let mut gathering = after(3);
        assert!(!gathering.waits(0), "nothing is there to wait with");
        for rows in 1..3 {
            gathering.called();
            assert!(gathering.waits(rows));
        }
        gathering.called();
        assert!(!gathering.waits(3));
    }

    #[test]
    fn who_does_not_come_back_is_waited_for_once() {
        let mut gathering = after(2);
        gathering.called();
        let turns = (0..10 * PATIENCE).filter(|_| gathering.waits(1)).count();
        assert_eq!(turns, PATIENCE as usize);
        gathering.called();
        assert!(!gathering.waits(1));
    }

    #[test]
    fn a_large_commit_and_one_after_a_quick_one_begin_at_once() {
        assert!(!after(1_000).waits(ENOUGH));
        let mut gathering = Gathering::default();
        gathering.committed(5);
        assert!(!gathering.waits(1));
    }
}
