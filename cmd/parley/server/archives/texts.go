// This file holds the text that people see from this package.

package archives

const (
	textAge         = "How long ago the newest archived day of the audit ended, from the process that archives."
	textFailing     = "How long archiving the audit has failed, from the process that archives; 0 if it hasn't."
	textNotArchived = "The audit hasn't been archived since %s: %s. Its records stay in the database until it is. `parley doctor` says what to do."
	textOverdue     = "The audit's records since %s should be archived by now, and aren't, though nothing has failed. They stay in the database until they are. `parley doctor` says what to do."
	textAgain       = "The audit is being archived again."
)
