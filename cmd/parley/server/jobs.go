package server

import (
	"context"
	"os"

	"parley/agent/jobs"
	"parley/agent/metrics"
	"parley/cmd/parley/data/home"
	"parley/sessions"
	"parley/tools"
	"parley/tools/sandbox"
	"parley/tools/shell"
)

// newJobs makes the runner of background commands.
func newJobs(on foundation, box sandbox.Sandbox, w *home.CallWorkspaces, where *home.CommandPlaces, may *rights, who *turnAdmission, hidden *secrets, a *auditing) *jobs.Runner {
	return jobs.New(jobs.Config{
		Store: on.home.Store, Bus: on.home.Bus, Sandbox: box, Place: where.ForWorkspace,
		Settings: func() jobs.Settings {
			c := on.settings.Load().Jobs
			return jobs.Settings{Limits: sessions.JobLimits{Session: c.PerSession, Person: c.PerPerson}, Longest: c.Longest, Write: c.Write}
		},
		Create: func(_ context.Context, session, path string) (*os.File, error) {
			dir, err := on.home.Workspace(session)
			if err != nil {
				return nil, err
			}
			return dir.Create(path)
		},
		Networked: may.reachesNetwork, Changed: w.MarkAfterJob, Redact: func(text string) string { return hidden.Load().Text(text) }, Admit: who.admit, Ready: on.home.MayRunJobs,
		Audit: a.Record, Point: on.point, Log: on.log,
	})
}

// jobsRunning is the part that runs jobs.
type jobsRunning struct{ *jobs.Runner }

// Gauges implements measured.
func (j jobsRunning) Gauges() []metrics.Gauge {
	return []metrics.Gauge{{Name: "jobs_running", Help: textJobsRunning, Values: func() map[string]float64 {
		return map[string]float64{"": float64(j.Running())}
	}}}
}

// mainAgentJobs is a shell.Background that starts no command for a sub-agent, because nobody would
// look after it.
type mainAgentJobs struct{ shell.Background }

// Start implements shell.Background: it starts the command, unless a sub-agent asks for it.
func (f mainAgentJobs) Start(ctx context.Context, call tools.Call, o shell.Order) (any, error) {
	if call.Parent != "" {
		return nil, tools.Errorf(tools.PermissionDenied, "a sub-agent can't run anything in the background: leave background out")
	}
	return f.Background.Start(ctx, call, o)
}
