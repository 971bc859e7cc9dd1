package sentinel_test

import (
	"slices"
	"strings"
	"testing"

	"parley/bus/redisbus/sentinel"
)

func TestParse(t *testing.T) {
	a, err := sentinel.Parse("rediss+sentinel://u:p@a:1,b:2/mail?db=3&sentinel_user=su&sentinel_password=sp&tls_name=n&copies=2")
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(a.Hosts, []string{"a:1", "b:2"}) || a.Name != "mail" || a.User != "su" || a.Password != "sp" ||
		a.ServerName != "n" || a.Copies != 2 || a.Redis() != "rediss://u:p@a:1?db=3" {
		t.Errorf("parsed %+v", a)
	}
	if a, err = sentinel.Parse("redis+sentinel://a,b/mail"); err != nil || !slices.Equal(a.Hosts, []string{"a:26379", "b:26379"}) || a.Copies != 1 {
		t.Errorf("parsed %+v, %v", a, err)
	}
	for address, says := range map[string]string{
		"redis+sentinel://:hunter2@a:1,b/mail":      "HOST:PORT",
		"redis+sentinel://:hunter2@/mail":           "HOST:PORT",
		"redis+sentinel://:hunter2@a:1":             "the name that they use for the master",
		"redis+sentinel://:hunter2@a:1/mail/1":      "the name that they use for the master",
		"redis+sentinel://:hunter2@a/mail?copies=x": "copies",
	} {
		if _, err := sentinel.Parse(address); err == nil || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v, want %q", address, err, says)
		}
	}
}
