package home

import "parley/cmd/parley/config"

// A SettingError says which setting keeps the server from starting, and what to do.
type SettingError struct {
	Where  string // file:line or where else the value comes from; may be empty
	Key    string
	Remedy string
}

// Error says where the setting stands, its name and what to do.
func (e *SettingError) Error() string {
	if e.Where == "" {
		return e.Key + ": " + e.Remedy
	}
	return e.Where + ": " + e.Key + ": " + e.Remedy
}

// Origin says where a setting's value comes from: file and line, a variable,
// or nothing where it is a default.
func Origin(cfg *config.Config, key string) string {
	for _, s := range cfg.Settings() {
		if s.Key == key && s.From != "default" {
			return s.From
		}
	}
	return ""
}
