// This file holds the text that models read from this package.

package server

import (
	"time"

	"parley/sessions/rates"
	"parley/tools"
)

func textKnowledge(folder, names string) string {
	return "The operator keeps a folder for you, which nobody changes: " + folder + "/. Look there, with grep, list_directory and read_file, before you answer what it may be about. It has:\n- " + names
}

func textOverRate(tool string, over *rates.OverError, now time.Time) *tools.Error {
	what, within := tool, map[time.Duration]string{time.Second: "second", time.Minute: "minute", time.Hour: "hour", 24 * time.Hour: "day"}[over.Rate.Window]
	if over.Rate.Tools != tool {
		what = "tools named " + over.Rate.Tools
	}
	wait := max(over.Wait.Round(time.Second), time.Second)
	return tools.Errorf(tools.RateLimited, "%s was not run: the operator allows each person %d calls of %s per %s, and this person has used them up. You can call it again in %s, at %s. Go on without it, or tell the person.",
		tool, over.Rate.Limit, what, within, wait, now.Add(wait).UTC().Format("2006-01-02 15:04:05 UTC"))
}
