//! The group-commit delay: a commit waits for callers that are about to call again.
//!
//! A caller that awaits each of its writes comes back as soon as it is answered. If the next commit began right then,
//! it would hold what others have sent meanwhile, and those who were just answered would wait for the one after: each
//! commit half full, for ever, and each as dear as a full one. So when a commit that took its time has been answered,
//! the next one waits for as many calls as were answered, as long as they keep coming; other tasks run meanwhile. A
//! caller from further away comes too late for that and costs the others a few microseconds, once.

/// Number of turns without a call that ends the wait. On one thread a single turn would do, but other threads may have
/// taken some callers over.
const MAX_QUIET_TURNS: u32 = 64;

/// Number of rows from which a commit is not delayed, because further rows gain little.
const LARGE_COMMIT: usize = 256;

/// Estimate of the callers that will call again soon.
#[derive(Debug, Default)]
pub(crate) struct CommitDelay {
    /// True if the commit under way is slow. A commit that completes at once is not worth a wait.
    is_slow: bool,
    /// Number of callers that were answered with the last commit and have not called since.
    expected_callers: usize,
    quiet_turns_left: u32,
}

impl CommitDelay {
    /// Notes that a commit was begun and has not completed at once.
    pub(crate) fn begun(&mut self) {
        self.is_slow = true;
    }

    /// Notes the end of a commit, which releases this many answers.
    pub(crate) fn committed(&mut self, answers: usize) {
        if std::mem::take(&mut self.is_slow) {
            self.expected_callers = answers;
            self.quiet_turns_left = MAX_QUIET_TURNS;
        }
    }

    /// Counts a call of a caller that may be one of those expected.
    pub(crate) fn called(&mut self) {
        self.expected_callers = self.expected_callers.saturating_sub(1);
        self.quiet_turns_left = MAX_QUIET_TURNS;
    }

    /// Returns true if a commit of this many rows should wait for another turn, and counts that turn.
    pub(crate) fn delays(&mut self, rows: usize) -> bool {
        let waits = self.expected_callers > 0 && (1..LARGE_COMMIT).contains(&rows);
        if waits {
            self.quiet_turns_left -= 1;
            if self.quiet_turns_left == 0 {
                self.expected_callers = 0;
            }
        }
        waits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(answers: usize) -> CommitDelay {
        let mut commit_delay = CommitDelay::default();
        commit_delay.begun();
        commit_delay.committed(answers);
        commit_delay
    }

    #[test]
    fn a_commit_waits_until_as_many_have_called_as_were_answered() {
        let mut commit_delay = after(3);
        assert!(!commit_delay.delays(0), "nothing is there to wait with");
        for rows in 1..3 {
            commit_delay.called();
            assert!(commit_delay.delays(rows));
        }
        commit_delay.called();
        assert!(!commit_delay.delays(3));
    }

    #[test]
    fn who_does_not_come_back_is_waited_for_once() {
        let mut commit_delay = after(2);
        commit_delay.called();
        let turns = (0..10 * MAX_QUIET_TURNS)
            .filter(|_| commit_delay.delays(1))
            .count();
        assert_eq!(turns, MAX_QUIET_TURNS as usize);
        commit_delay.called();
        assert!(!commit_delay.delays(1));
    }

    #[test]
    fn a_large_commit_and_one_after_a_quick_one_begin_at_once() {
        assert!(!after(1_000).delays(LARGE_COMMIT));
        let mut commit_delay = CommitDelay::default();
        commit_delay.committed(5);
        assert!(!commit_delay.delays(1));
    }
}
