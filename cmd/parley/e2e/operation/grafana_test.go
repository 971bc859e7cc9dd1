package operation

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"parley/agent/agenttest"
	"parley/cmd/parley/parleytest"
	"parley/tools/nodes"
)

// A dashboard contains all fields of deploy/grafana.json.
type dashboard struct {
	UID, Title, Description, Refresh, Timezone string
	Tags                                       []string
	SchemaVersion, Version, GraphTooltip       int
	Editable                                   bool
	Time                                       struct{ From, To string }
	Templating                                 struct{ List []variable }
	Panels                                     []panel
}

// A variable is a choice that people have above a dashboard.
type variable struct {
	Name, Label, Type, Definition, AllValue string
	Hide, Refresh                           int
	IncludeAll, Multi                       bool
	Datasource                              *source
	Query                                   json.RawMessage
}

// A source says where a panel's data comes from.
type source struct{ Type, UID string }

// A panel is one part of a dashboard.
type panel struct {
	ID                       int
	Type, Title, Description string
	Collapsed                bool
	GridPos                  struct{ H, W, X, Y int }
	Panels                   []panel
	Datasource               *source
	FieldConfig              struct {
		Defaults struct {
			Unit string
			Min  int
		}
		Overrides []struct{}
	}
	Options map[string]any
	Targets []struct {
		RefID, Expr, LegendFormat string
		Datasource                source
	}
}

func readDashboard(t *testing.T) (d dashboard) {
	t.Helper()
	in := json.NewDecoder(strings.NewReader(parleytest.ReadSource(t, "deploy/grafana.json")))
	in.DisallowUnknownFields()
	parleytest.Must(t, in.Decode(&d))
	return d
}

// No two panels of the dashboard overlap, and each uses the Prometheus that people choose.
func TestTheDashboardIsWhole(t *testing.T) {
	d := readDashboard(t)
	if d.Title == "" || d.UID == "" || len(d.Templating.List) != 2 || d.Templating.List[0].Name != "datasource" || d.Templating.List[1].Name != "job" {
		t.Errorf("it is %q with the variables %+v", d.Title, d.Templating.List)
	}
	taken := map[[2]int]string{}
	ids := map[int]bool{}
	for _, p := range d.Panels {
		at := p.GridPos
		for x := at.X; x < at.X+at.W; x++ {
			for y := at.Y; y < at.Y+at.H; y++ {
				if other := taken[[2]int{x, y}]; other != "" {
					t.Fatalf("%q is in the place of %q", p.Title, other)
				}
				taken[[2]int{x, y}] = p.Title
			}
		}
		if ids[p.ID] || p.ID == 0 || at.W*at.H == 0 || at.X+at.W > 24 || p.Title == "" {
			t.Errorf("%q has the id %d and is at %+v", p.Title, p.ID, at)
		}
		ids[p.ID] = true
		if p.Type == "row" {
			continue
		}
		units := []string{"none", "s", "bytes", "currencyUSD"}
		if !slices.Contains([]string{"stat", "timeseries"}, p.Type) || !slices.Contains(units, p.FieldConfig.Defaults.Unit) || p.Description == "" || len(p.Targets) == 0 {
			t.Errorf("%q is a %q in %q with %d queries", p.Title, p.Type, p.FieldConfig.Defaults.Unit, len(p.Targets))
		}
		for i, target := range p.Targets {
			if want := (source{"prometheus", "${datasource}"}); target.Datasource != want || p.Datasource == nil || *p.Datasource != want || target.RefID != string(rune('A'+i)) || target.LegendFormat == "" {
				t.Errorf("%q has the query %+v", p.Title, target)
			}
			if !strings.Contains(target.Expr, `job=~"$job"`) {
				t.Errorf("%q shows all jobs: %s", p.Title, target.Expr)
			}
		}
	}
}

// A prometheus is a real Prometheus server that scrapes Parley and evaluates the rules in deploy.
type prometheus struct {
	t   *testing.T
	url string
}

// startPrometheus starts a Prometheus with the settings in deploy, which scrapes o with this token.
func startPrometheus(t *testing.T, o *parleytest.HTTPWorld, token string) *prometheus {
	t.Helper()
	program := os.Getenv("PARLEY_TEST_PROMETHEUS")
	if program == "" {
		t.Skip("there is no PARLEY_TEST_PROMETHEUS: run it as `.ci/servers --prometheus go test …`, or with make test")
	}
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		parleytest.Must(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	write("alerts.yaml", parleytest.ReadSource(t, "deploy/alerts.yaml"))
	settings := parleytest.ReadSource(t, "deploy/prometheus.yaml")
	for was, now := range map[string]string{
		"/etc/prometheus/parley-token": write("token", token), "127.0.0.1:7275": strings.TrimPrefix(o.URL, "http://"), "scrape_interval: 15s": "scrape_interval: 1s",
	} {
		if strings.Count(settings, was) != 1 {
			t.Fatalf("deploy/prometheus.yaml doesn't have one %s", was)
		}
		settings = strings.Replace(settings, was, now, 1)
	}
	address := parleytest.FreeAddress(t)
	cmd := exec.Command(program, "--config.file="+write("prometheus.yaml", "global:\n  evaluation_interval: 1s\n  scrape_timeout: 1s\n"+settings),
		"--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address="+address)
	var log parleytest.SyncBuffer
	cmd.Stdout, cmd.Stderr = &log, &log
	parleytest.Must(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have ended
		_ = cmd.Wait()         // killed
		if t.Failed() {
			t.Logf("Prometheus said:\n%s", log.Tail())
		}
	})
	p := &prometheus{t, "http://" + address}
	parleytest.WaitFor(t, "Prometheus to be ready", func() bool {
		answer, err := http.Get(p.url + "/-/ready")
		if err != nil {
			return false
		}
		defer answer.Body.Close()
		return answer.StatusCode == http.StatusOK
	})
	return p
}

// ask sends a request to the API of Prometheus, and decodes its answer into data.
func (p *prometheus) ask(path string, data any) {
	p.t.Helper()
	answer, err := http.Get(p.url + "/api/v1/" + path)
	parleytest.Must(p.t, err)
	defer answer.Body.Close()
	var body bytes.Buffer
	_, err = body.ReadFrom(answer.Body)
	parleytest.Must(p.t, err)
	whole := struct {
		Status string
		Data   any
	}{Data: data}
	if err := json.Unmarshal(body.Bytes(), &whole); err != nil || whole.Status != "success" {
		p.t.Fatalf("%s: %v %s", path, err, &body)
	}
}

// shows reports whether the result of a query contains a number.
func (p *prometheus) shows(expr string) bool {
	p.t.Helper()
	var data struct {
		ResultType string
		Result     []struct{ Value []any }
	}
	p.ask("query?query="+url.QueryEscape(expr), &data)
	for _, r := range data.Result {
		if v, err := strconv.ParseFloat(r.Value[1].(string), 64); err == nil && !math.IsNaN(v) && !math.IsInf(v, 0) {
			return true
		}
	}
	return false
}

// busy plays a model that is asked twice in each turn. It calls a tool that fails, one that succeeds, and one of a node
// that is away.
func busy(r agenttest.Request) agenttest.Response {
	switch {
	case strings.HasPrefix(r.Said(), "fail"):
		return agenttest.Fail(http.StatusBadRequest, `{"error":{"message":"no"}}`)
	case r.Rounds() == 0:
		return agenttest.Calls(agenttest.Call("read_file", `{"path":"nowhere.txt"}`), agenttest.Call("list_directory", `{"path":"."}`), agenttest.Call("pi__look", `{}`))
	}
	return agenttest.Reply("you said " + r.Said())
}

// A real Prometheus that scrapes the server returns a number for each query of the dashboard, and can evaluate each
// alert.
func TestTheDashboardShowsWhatAServerDoes(t *testing.T) {
	t.Parallel()
	const token = "token-of-prometheus-in-the-test"
	w := parleytest.New(t, busy, fmt.Sprintf("[nodes.pi]\nagents = [\"main\"]\n[tokens.prometheus]\ntoken = %q\nmay = [\"metrics\"]\n", token))
	text, err := os.ReadFile(w.File)
	parleytest.Must(t, err)
	parleytest.Must(t, os.WriteFile(w.File, []byte(strings.Replace(string(text), "api_key = \"none\"\n", "api_key = \"none\"\nprice_input = 1\nprice_output = 2\n", 1)), 0o600))
	o := parleytest.ListenHTTP(w)
	o.Up()
	o.Ready(t)
	d := o.Join("pi", "")
	d.Offer(nodes.Tool{Name: "look", Description: "Looks around.", Schema: json.RawMessage(`{"type":"object"}`), Pure: true})
	if a := o.Ask("POST", "/v1/nodes/pi/accept", "{}", o.OwnerHeader()...); a.Status != http.StatusOK {
		t.Fatalf("the node isn't accepted: %d %s", a.Status, a.Body)
	}
	d.Leave()
	p := startPrometheus(t, o, token)
	missing := map[string]string{}
	for _, one := range readDashboard(t).Panels {
		for _, target := range one.Targets {
			expr := strings.NewReplacer("$job", "parley", "$__rate_interval", "1m").Replace(target.Expr)
			if strings.Contains(expr, "$") {
				t.Errorf("%q asks for more: %s", one.Title, expr)
			}
			missing[expr] = one.Title
		}
	}
	if len(missing) < 20 {
		t.Fatalf("there are %d queries: are they all read?", len(missing))
	}
	said := 0
	parleytest.WaitFor(t, "numbers in all panels", func() bool {
		w.Telegram.Say(2, 2, fmt.Sprint("hello ", said))
		w.Telegram.Say(3, 3, fmt.Sprint("fail ", said))
		said++
		w.WaitSaid(2, said)
		w.WaitSaid(3, said)
		for expr := range missing {
			if p.shows(expr) {
				delete(missing, expr)
			}
		}
		if said == 400 {
			t.Fatalf("no numbers are in %v", missing)
		}
		return len(missing) == 0
	})
	rules := len(regexp.MustCompile(`(?m)^\s+- alert: `).FindAllString(parleytest.ReadSource(t, "deploy/alerts.yaml"), -1))
	parleytest.WaitFor(t, "all alerts to be evaluated", func() bool {
		var found struct {
			Groups []struct {
				Rules []struct{ Name, Health, LastError, State string }
			}
		}
		p.ask("rules", &found)
		fine := 0
		for _, g := range found.Groups {
			for _, r := range g.Rules {
				if r.Health == "err" {
					t.Fatalf("%s can't be evaluated: %s", r.Name, r.LastError)
				}
				if r.Health == "ok" {
					fine++
				}
			}
		}
		return fine == rules && rules > 0
	})
}
