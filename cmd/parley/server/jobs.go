package server

import (
	"context"
	"os"

	"parley/agent/jobs"
	"parley/agent/metrics"
	"parley/agent/nodes"
	"parley/cmd/parley/data/home"
	"parley/cmd/parley/server/nodelinks"
	"parley/sessions"
	"parley/tools/sandbox"
)

// newJobs returns the runner of background commands.
func newJobs(on foundation, box sandbox.Sandbox, w *home.CallWorkspaces, where *home.CommandPlaces, may *rights, who *turnAdmission, hidden *secrets, a *auditing, n *nodelinks.Nodes) *jobs.Runner {
	return jobs.New(jobs.Config{
		Store: on.home.Store, Bus: on.home.Bus, Sandbox: box, Place: where.ForWorkspace,
		Settings: func() jobs.Settings {
			c := on.settings.Load().Jobs
			return jobs.Settings{Limits: sessions.JobLimits{Session: c.PerSession, Person: c.PerPerson}, MaxTime: c.Longest, Write: c.Write}
		},
		Create: func(_ context.Context, session, path string) (*os.File, error) {
			dir, err := on.home.Workspace(session)
			if err != nil {
				return nil, err
			}
			return dir.Create(path)
		},
		Networked: may.reachesNetwork, Changed: w.MarkAfterJob, Redact: func(text string) string { return hidden.Load().Text(text) }, Admit: who.admit, Ready: on.home.MayRunJobs,
		Nodes: nodes.Jobs{Service: n.Service}, ReadyOnNodes: on.home.MayRunJobsOnNodes, Audit: a.Record, Point: on.point, Log: on.log,
	})
}

// jobsRunning is the part that runs jobs.
type jobsRunning struct{ *jobs.Runner }

// Gauges implements measured.
func (j jobsRunning) Gauges() []metrics.Gauge {
	return []metrics.Gauge{{Name: "jobs_running", Help: textJobsRunning, Values: func() map[string]float64 {
		return map[string]float64{"": float64(j.CountRunning())}
	}}}
}
