package config

import (
	"net/url"
	"strings"
)

// Secrets are the values that no output may show: what is declared, or was referred to,
// as a secret, and passwords in addresses.
func (c *Config) Secrets() []string {
	var all []string
	c.kept.each(func(_ string, v *value) {
		text, isText := v.v.(string)
		switch {
		case v.hidden || v.set.secret:
			all = append(all, texts(v.v)...)
		case isText && v.set.kind == asURL:
			all = append(all, password(text)...)
		}
	})
	return all
}

// texts are all texts within a value.
func texts(v any) []string {
	var all []string
	switch v := v.(type) {
	case string:
		return []string{v}
	case []string:
		return v
	case []any:
		for _, inner := range v {
			all = append(all, texts(inner)...)
		}
	case map[string]any:
		for _, inner := range v {
			all = append(all, texts(inner)...)
		}
	}
	return all
}

// password is that of an address, unless it is a word that the address holds anyway.
func password(address string) []string {
	u, err := url.Parse(address)
	if err != nil || u.User == nil {
		return nil
	}
	secret, _ := u.User.Password()
	if secret == "" || strings.Count(address, secret) > 1 {
		return nil
	}
	return []string{secret}
}
