package config

import (
	"time"

	"parley/cmd/parley/config/schema"
)

// Jobs limits the commands that agents run in the background, beyond the turn that starts them.
type Jobs struct {
	PerSession int           // how many at once
	PerPerson  int           // how many at once, in all conversations of the person
	Longest    time.Duration // how long a job may run
	Write      bool          // whether jobs may write to all of the workspace
}

// jobsSection declares the settings of commands in the background.
func jobsSection() section {
	return section{
		Section: schema.Section{Name: "jobs", Settings: []schema.Setting{
			{Key: "per_session", Kind: schema.Count, Default: int64(3), Least: 1, Reload: schema.AtOnce, Fill: schema.Into(func(j *Jobs) any { return &j.PerSession })},
			{Key: "per_person", Kind: schema.Count, Default: int64(10), Least: 1, Reload: schema.AtOnce, Fill: schema.Into(func(j *Jobs) any { return &j.PerPerson })},
			{Key: "most", Kind: schema.Duration, Default: 4 * time.Hour, Least: int64(time.Second), Reload: schema.AtOnce, Fill: schema.Into(func(j *Jobs) any { return &j.Longest })},
			{Key: "write", Kind: schema.Truth, Default: false, Example: "true", Reload: schema.AtOnce, Fill: schema.Into(func(j *Jobs) any { return &j.Write })},
		}},
		check: checkJobs,
	}
}

// maxJobTime is the longest time limit that can be set for jobs. The sandbox takes temporary folders that are a day old
// for the remains of a crash, so no job may run that long.
const maxJobTime = 20 * time.Hour

// checkJobs reports a time limit for jobs that is too long.
func checkJobs(l *loader) {
	if most, _ := l.Value("jobs.most").(time.Duration); most > maxJobTime {
		l.Report(l.At("jobs.most"), "jobs.most", "a job can't take longer than "+maxJobTime.String(), `write something like most = "12h"`)
	}
}
