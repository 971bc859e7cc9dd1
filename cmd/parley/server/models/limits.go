package models

import (
	"parley/agent"
	"parley/channels/heartbeat"
	"parley/cmd/parley/config"
)

// LimitsIn returns how much people may ask of agents, and how much models may cost, according to these settings.
func LimitsIn(c *config.Config) agent.Limits {
	people, beat, budget := c.Limits, c.Heartbeat, c.Budget
	return agent.Limits{
		Turns: people.UserTurns, TurnsHour: people.UserTurnsHour, TokensDay: people.UserTokensDay, MaxWaiting: people.Waiting, ModelWait: c.Model.Wait,
		TokensAlways: people.TokensWritten, UserDay: budget.UserDay, SessionDay: budget.SessionDay, Day: budget.Day, Month: budget.Month,
		NamedBudgets: map[string]agent.NamedBudget{heartbeat.Person(beat.Agent): ownBudget(c)},
	}
}

// ownBudget returns how much an agent may use when it goes through its checklist unasked: the
// setting for that, or the limit for one person if that is less.
func ownBudget(c *config.Config) agent.NamedBudget {
	b := agent.NamedBudget{TokensDay: c.Heartbeat.TokensDay, UserDay: c.Heartbeat.Day}
	b.Name, b.MoneySetting, b.TokensSetting = "Heartbeats", "[heartbeat] day", "[heartbeat] tokens_day"
	if c.Limits.UserTokensDay < b.TokensDay {
		b.TokensDay, b.TokensSetting = c.Limits.UserTokensDay, "[limits] user_tokens_day"
	}
	if c.Budget.UserDay < b.UserDay {
		b.UserDay, b.MoneySetting = c.Budget.UserDay, "[budget] user_day"
	}
	return b
}
