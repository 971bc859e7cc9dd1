package home

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"parley/cmd/parley/config"
)

// A process records, as a number, how much it understands of the data that others write. Each release that adds to
// that data raises the number. Releases before the first number record nothing.
const (
	understandsAsks      = 1  // turns that wait for people
	understandsPeople    = 2  // sessions of one person in a place shared with others
	understandsFiles     = 3  // files in answers, files that arrive with messages, and pictures
	understandsTimes     = 4  // messages from schedules
	understandsJobs      = 5  // the entry that a job has ended
	understandsGrowth    = 6  // drafts that are growing messages
	understandsParts     = 7  // summaries of a part of a turn that continues
	understandsSubAgents = 8  // sub-agents' sessions, and turns that wait for them
	understandsPlaces    = 9  // folders that agents have in place of the workspaces' root
	understandsInodes    = 10 // approvals that are valid on every machine that mounts the workspace
	understandsTitles    = 11 // titles that models make, which are erased with the conversation
	understandsProposals = 12 // proposals of what to remember, which are erased with the person's data
	understandsArchive   = 13 // the archive of the audit, with keys that are erased with the person's data
	understandsNodes     = 14 // calls of nodes, which are erased with the conversation and the person's data
	understandsNodeJobs  = 15 // jobs on nodes, which outlive the process that waits for them
	understands          = understandsNodeJobs
)

// endTimeout is how long a process may take to remove its note when it ends.
const endTimeout = 2 * time.Second

// announce records what this process understands, for others that write data that older releases don't know. While
// a process is running that cannot record it, because it may only read, the others write no such data.
func (h *Home) announce(ctx context.Context, log *slog.Logger) error {
	all, err := h.Bus.Processes(ctx)
	if err != nil {
		return fmt.Errorf("find out which processes are serving: %w", err)
	}
	if err := h.Book.NoteProcess(ctx, all[0], understands); err != nil {
		log.Debug("this process could not say what it understands", slog.Any("error", err))
		return nil
	}
	h.self = all[0]
	return nil
}

// removeNote removes this process's note. A process that is killed leaves its note behind; that does no harm,
// because the bus no longer lists the process.
func (h *Home) removeNote() {
	if h.self == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), endTimeout)
	defer cancel()
	_ = h.Book.NoteProcess(ctx, h.self, 0) // if this fails, the effect is the same as being killed
}

// MayPark returns why no turn may wait for people now; "" if turns may. Processes of an older release would not
// understand such a turn.
func (h *Home) MayPark(ctx context.Context) (why string, err error) {
	able, err := h.allUnderstand(ctx, understandsAsks)
	if err != nil || able {
		return "", err
	}
	return olderServes, nil
}

// MaySplitByPerson reports whether people may have their own sessions in a place that they share: processes of an older
// release would not accept the key of such a session.
func (h *Home) MaySplitByPerson(ctx context.Context) (bool, error) {
	return h.allUnderstand(ctx, understandsPeople)
}

// MayGrow reports whether a draft may be a growing message: a process of an older release that takes over the
// channel could neither find it nor replace it with the answer.
func (h *Home) MayGrow(ctx context.Context) (bool, error) {
	return h.allUnderstand(ctx, understandsGrowth)
}

// MaySummarizeParts reports whether a summary may cover a part of a turn that continues: a process of an older release would
// treat that turn as part of a conversation that has ended.
func (h *Home) MaySummarizeParts(ctx context.Context) (bool, error) {
	return h.allUnderstand(ctx, understandsParts)
}

// MayTitle reports whether a conversation may have a title made by a model: a process of an older release would
// leave the title in the store when the conversation is erased.
func (h *Home) MayTitle(ctx context.Context) (bool, error) {
	return h.allUnderstand(ctx, understandsTitles)
}

// MayPropose reports whether an agent may propose what to remember: a process of an older release wouldn't erase
// the proposals when the person is forgotten.
func (h *Home) MayPropose(ctx context.Context) (bool, error) {
	return h.allUnderstand(ctx, understandsProposals)
}

// MayArchive reports whether the audit may be archived: a process of an older release would delete records that aren't
// archived yet, and would leave the keys of pseudonyms when somebody is forgotten.
func (h *Home) MayArchive(ctx context.Context) (bool, error) {
	return h.allUnderstand(ctx, understandsArchive)
}

// allUnderstand reports whether all serving processes understand at least the given number.
func (h *Home) allUnderstand(ctx context.Context, least int) (bool, error) {
	all, err := h.Bus.Processes(ctx)
	if err != nil {
		return false, err
	}
	return h.Book.AllUnderstand(ctx, all, least)
}

// MaySchedule returns why nothing can be scheduled now; "" if it can. A process of an older release would not touch
// the sessions in which a schedule speaks.
func (h *Home) MaySchedule(ctx context.Context) (why string, err error) {
	able, err := h.allUnderstand(ctx, understandsTimes)
	if err != nil || able {
		return "", err
	}
	return olderServes, nil
}

// A process that has just begun to serve may not have recorded yet what it understands. waitUntilAllUnderstand waits
// for that at most sayWithin, and asks again every askEvery.
const (
	sayWithin = 3 * time.Second
	askEvery  = 200 * time.Millisecond
)

// MayLogFiles returns why files that come with messages, and pictures that tools show, cannot be recorded in a log now;
// "" if they can. A process of an older release would not touch a session that contains such an entry.
func (h *Home) MayLogFiles(ctx context.Context) (why string, err error) {
	able, err := h.waitUntilAllUnderstand(ctx, understandsFiles)
	if err != nil || able {
		return "", err
	}
	return olderServes, nil
}

// checkAllKnowFolders refuses agents' folders while a process of an older release serves, which would put the files
// of these agents' sessions in the workspaces' root.
func (h *Home) checkAllKnowFolders(ctx context.Context, c *config.Config) error {
	own := c.Folders()[1:]
	if len(own) == 0 || c.Bus.URL == "" {
		return nil
	}
	able, err := h.waitUntilAllUnderstand(ctx, understandsPlaces)
	if err != nil || able {
		return err
	}
	return &config.SettingError{Where: c.Origin(own[0].Key), Key: own[0].Key,
		Remedy: olderServes + ", and it would put the files elsewhere: leave the setting out until all processes run this release"}
}

const olderServes = "a process of an older release is still running"

// waitUntilAllUnderstand waits for processes that have just begun to serve, and reports whether all understand at
// least the given number.
func (h *Home) waitUntilAllUnderstand(ctx context.Context, least int) (able bool, err error) {
	for deadline := time.Now().Add(sayWithin); ; {
		if able, err = h.allUnderstand(ctx, least); err != nil || able || time.Now().After(deadline) {
			return able, err
		}
		select {
		case <-time.After(askEvery):
		case <-ctx.Done():
			return false, context.Cause(ctx)
		}
	}
}

// MayRunJobs returns why nothing can be run in the background now; "" if jobs can be run. A process of an older
// release would not touch the sessions in which a job's end is reported.
func (h *Home) MayRunJobs(ctx context.Context) (why string, err error) {
	able, err := h.allUnderstand(ctx, understandsJobs)
	if err != nil || able {
		return "", err
	}
	return olderServes, nil
}

// MayUseSubAgents returns why nothing can be handed to sub-agents now; "" if it can. A process of an older release
// would not touch a sub-agent's session, nor the session that it works for.
func (h *Home) MayUseSubAgents(ctx context.Context) (why string, err error) {
	able, err := h.allUnderstand(ctx, understandsSubAgents)
	if err != nil || able {
		return "", err
	}
	return olderServes, nil
}

// MayUseNodes returns why no node can be given calls now; "" if nodes can. A process of an older release would leave their
// calls in the store when the conversation or the person is forgotten.
func (h *Home) MayUseNodes(ctx context.Context) (why string, err error) {
	able, err := h.allUnderstand(ctx, understandsNodes)
	if err != nil || able {
		return "", err
	}
	return olderServes, nil
}

// MayRunJobsOnNodes returns why nothing can be run in the background on a node now; "" if jobs can be run. A process of an
// older release would take such a job for lost when the process that waits for it has ended.
func (h *Home) MayRunJobsOnNodes(ctx context.Context) (why string, err error) {
	able, err := h.allUnderstand(ctx, understandsNodeJobs)
	if err != nil || able {
		return "", err
	}
	return olderServes, nil
}

// MayCompareAnywhere reports whether an approval may be compared without the number that a machine gives a mounted
// disk: a process of an older release would consider the call a different one. It is checked again for each
// approval, because an older process may have begun to serve a moment ago.
func (h *Home) MayCompareAnywhere(ctx context.Context) (bool, error) {
	return h.allUnderstand(ctx, understandsInodes)
}

// MaySendFiles returns why no answer may contain files now, as a sentence without its period; "" if answers may. A process
// of an older release that continues the turn would send only the text. If that isn't known, it returns both a sentence and
// an error.
func (h *Home) MaySendFiles(ctx context.Context) (why string, err error) {
	const noFiles = "I can't send files right now: "
	able, err := h.allUnderstand(ctx, understandsFiles)
	switch {
	case err != nil:
		return noFiles + "I can't tell whether all processes know how", err
	case !able:
		return noFiles + olderServes, nil
	}
	return "", nil
}
