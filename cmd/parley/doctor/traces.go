package doctor

import (
	"context"
	"fmt"
	"net/url"

	"parley/bus/trace/otlp"
	"parley/cmd/parley/config"
)

// checkTraces asks the collector of traces whether it accepts a request, if there is one.
func checkTraces(ctx context.Context, cfg *config.Config) []Finding {
	to := cfg.Trace.URL()
	if to == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	host := to
	if u, err := url.Parse(to); err == nil {
		host = u.Host
	}
	err := otlp.Check(ctx, otlp.Collector{URL: to, Headers: cfg.Trace.Headers}, otlp.Service{})
	if err != nil {
		return []Finding{{Part: "traces", State: wrong, Detail: fmt.Sprintf(textTracesRefused, host, err), Remedy: textTracesRemedy}}
	}
	detail := fmt.Sprintf(textTracesFine, host)
	if cfg.Trace.Text {
		detail += textTracesText
	}
	return []Finding{{Part: "traces", State: fine, Detail: detail}}
}
