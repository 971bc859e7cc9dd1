package config

import "parley/cmd/parley/config/schema"

// Limits limits how much people may ask of the bot, and how long queues may be.
type Limits struct {
	UserTurns     int   // turns at once for one person who is not an owner
	UserTurnsHour int   // turns within an hour
	UserTokensDay int64 // tokens within a day
	// TokensWritten says that the operator has set UserTokensDay.
	TokensWritten bool
	Waiting       int // messages in one session, including those being answered
	Outbound      int // messages for one address
}

// limitsSection declares the settings of limits.
func limitsSection() section {
	return section{Section: schema.Section{Name: "limits", Settings: []schema.Setting{
		{Key: "user_turns", Kind: schema.Count, Default: int64(3), Least: 1, Reload: schema.AtOnce, Fill: schema.Into(func(l *Limits) any { return &l.UserTurns })},
		{Key: "user_turns_hour", Kind: schema.Count, Default: int64(120), Least: 1, Reload: schema.AtOnce, Fill: schema.Into(func(l *Limits) any { return &l.UserTurnsHour })},
		{Key: "user_tokens_day", Kind: schema.Count, Default: int64(5_000_000), Least: 1, Large: true, Reload: schema.AtOnce, Fill: schema.Into(func(l *Limits) any { return &l.UserTokensDay })},
		{Key: "waiting", Kind: schema.Count, Default: int64(20), Least: 1, Fill: schema.Into(func(l *Limits) any { return &l.Waiting })},
		{Key: "outbound", Kind: schema.Count, Default: int64(100_000), Least: 1, Fill: schema.Into(func(l *Limits) any { return &l.Outbound })},
	}}}
}
