package canvas

import (
	"fmt"
	"html/template"
	"math"
	"slices"
	"strconv"
	"strings"

	"parley/tools"
)

// The kinds of plots.
const (
	linePlot    = "line"
	barPlot     = "bar"
	scatterPlot = "scatter"
)

// A plot is the plot in a model's arguments.
type plot struct {
	Kind   string   `json:"kind" jsonschema:"line, bar or scatter"`
	X      []string `json:"x" jsonschema:"the values of x in order, 2000 at most: numbers, or names such as days"`
	Series []series `json:"series" jsonschema:"what is plotted, 8 at most"`
}

// A series is the data of one color of a plot.
type series struct {
	Name   string    `json:"name" jsonschema:"what it is"`
	Values []float64 `json:"values" jsonschema:"a number for each value of x"`
}

// maxNumber is the largest number that is plotted, so that differences stay finite.
const maxNumber = 1e300

// check refuses a plot that is too large, or whose numbers don't fit together.
func (p *plot) check() error {
	switch {
	case p.Kind != linePlot && p.Kind != barPlot && p.Kind != scatterPlot:
		return tools.Errorf(tools.InvalidArgs, errKind, tools.Clip(p.Kind, 40))
	case len(p.Series) == 0 || len(p.Series) > maxSeries:
		return tools.Errorf(tools.InvalidArgs, errSeries, len(p.Series), maxSeries)
	case len(p.X) == 0 || len(p.X) > maxPoints:
		return tools.Errorf(tools.InvalidArgs, errPoints, len(p.X), maxPoints)
	}
	texts := slices.Clone(p.X)
	for _, s := range p.Series {
		texts = append(texts, s.Name)
		if len(s.Values) != len(p.X) {
			return tools.Errorf(tools.InvalidArgs, errValues, tools.Clip(s.Name, 40), len(s.Values), len(p.X))
		}
		for _, v := range s.Values {
			if math.Abs(v) > maxNumber {
				return tools.Errorf(tools.InvalidArgs, errNumber, v)
			}
		}
	}
	for _, text := range texts {
		if len(text) > maxTitle {
			return tools.Errorf(tools.InvalidArgs, errLabel, len(text), maxTitle)
		}
	}
	if i := slices.IndexFunc(p.X, func(x string) bool { _, ok := number(x); return !ok }); i >= 0 && p.Kind == scatterPlot {
		return tools.Errorf(tools.InvalidArgs, errScatter, tools.Clip(p.X[i], 40))
	}
	return nil
}

// number parses a value of x as a number; false if it isn't one, or exceeds maxNumber.
func number(x string) (float64, bool) {
	v, err := strconv.ParseFloat(strings.TrimSpace(x), 64)
	return v, err == nil && math.Abs(v) <= maxNumber // excludes NaN, too
}

// The places in a drawing, in pixels.
const (
	plotWidth   = 760
	leftEdge    = 70
	rightEdge   = plotWidth - 16
	topEdge     = 12
	belowAxis   = 36 // the room for the names on the axis
	maxNames    = 12 // of values of x
	letterWidth = 7
)

// A look of a series: its color, which has a contrast of at least 4.5 to 1 to white, and how its line is dashed, for those
// who don't see colors.
type seriesLook struct{ Color, Dash string }

func seriesLooks() []seriesLook {
	return []seriesLook{
		{"#2f5fd0", ""}, {"#b3261e", "7 4"}, {"#1d7a46", "2 3"}, {"#8a5a00", "10 3 2 3"},
		{"#7b3fa0", ""}, {"#00696f", "7 4"}, {"#ad1457", "2 3"}, {"#4a4f59", "10 3 2 3"},
	}
}

// A drawing is a plot in the form that its template needs.
type drawing struct {
	Title   string
	Label   string // a description for people who can't see it
	Width   int
	Height  int
	Left    int
	Right   int
	Bottom  float64
	Legend  []legendLine
	TicksY  []tick
	TicksX  []tick
	Lines   []drawnLine
	Bars    []drawnBar
	Dots    []drawnDot
	Numbers *grid
}

type legendLine struct {
	seriesLook
	Name string
	Line bool
}

type tick struct {
	At   float64
	Text string
}

type drawnLine struct {
	seriesLook
	Path string
}

type drawnBar struct {
	Color               string
	X, Y, Width, Height float64
}

type drawnDot struct {
	Color string
	X, Y  float64
}

const plotTemplate = gridTemplate + `{{with .Title}}<h1>{{.}}</h1>
{{end}}<ul class="legend">{{range .Legend}}<li><svg viewBox="0 0 22 12" aria-hidden="true">{{if .Line}}<path d="M0 6H22" stroke="{{.Color}}" stroke-width="2.5" stroke-dasharray="{{.Dash}}"/>{{else}}<rect width="22" height="12" fill="{{.Color}}"/>{{end}}</svg>{{.Name}}</li>{{end}}</ul>
<svg viewBox="0 0 {{.Width}} {{.Height}}" role="img" aria-label="{{.Label}}">
{{range .TicksY}}<path class="rule" d="M{{$.Left}} {{.At}}H{{$.Right}}"/><text x="{{$.Left}}" dx="-8" y="{{.At}}" dy="4" text-anchor="end">{{.Text}}</text>
{{end}}{{range .TicksX}}<text x="{{.At}}" y="{{$.Bottom}}" dy="20" text-anchor="middle">{{.Text}}</text>
{{end}}{{range .Bars}}<rect x="{{.X}}" y="{{.Y}}" width="{{.Width}}" height="{{.Height}}" fill="{{.Color}}"/>
{{end}}{{range .Lines}}<path d="{{.Path}}" fill="none" stroke="{{.Color}}" stroke-width="2.5" stroke-linejoin="round" stroke-dasharray="{{.Dash}}"/>
{{end}}{{range .Dots}}<circle cx="{{.X}}" cy="{{.Y}}" r="3.5" fill="{{.Color}}" fill-opacity=".8"/>
{{end}}</svg>
{{with .Numbers}}<details><summary>Numbers</summary>{{template "grid" .}}</details>
{{end}}`

func (p *plot) draw(title string, height int, numbers bool) (template.HTML, error) {
	d := p.drawing(title, height)
	if numbers {
		g := p.numbers().grid("")
		d.Numbers = &g
	}
	drawn, err := render(d, plotTemplate)
	return pageStyle + drawn, err
}

// drawing lays a plot out.
func (p *plot) drawing(title string, height int) drawing {
	d := drawing{Title: title, Width: plotWidth, Height: max(minHeight, height-110), Left: leftEdge, Right: rightEdge}
	d.Bottom = float64(d.Height - belowAxis)
	looks := seriesLooks()
	var names []string
	for i, s := range p.Series {
		names = append(names, s.Name)
		d.Legend = append(d.Legend, legendLine{looks[i], s.Name, p.Kind == linePlot})
	}
	d.Label = fmt.Sprintf("%s plot of %s, with %d values each", p.Kind, strings.Join(names, ", "), len(p.X))
	y := p.scaleY(d.Bottom)
	for _, v := range y.ticks() {
		d.TicksY = append(d.TicksY, tick{y.at(v), shortNumber(v)})
	}
	if p.Kind == barPlot {
		d.drawBars(p, y, looks)
		return d
	}
	x, ticks := p.scaleX()
	d.TicksX = ticks
	for i, s := range p.Series {
		look, path := looks[i], strings.Builder{}
		for n, v := range s.Values {
			at, up := x(n), y.at(v)
			if p.Kind == scatterPlot || len(p.X) == 1 {
				d.Dots = append(d.Dots, drawnDot{look.Color, at, up})
			}
			fmt.Fprintf(&path, "%c%.1f %.1f", "ML"[min(n, 1)], at, up)
		}
		if p.Kind == linePlot {
			d.Lines = append(d.Lines, drawnLine{look, path.String()})
		}
	}
	return d
}

// drawBars draws, for each value of x, a bar for each series.
func (d *drawing) drawBars(p *plot, y scale, looks []seriesLook) {
	step := float64(rightEdge-leftEdge) / float64(len(p.X))
	wide := step * 0.8 / float64(len(p.Series))
	for i, s := range p.Series {
		for n, v := range s.Values {
			from, to := y.at(0), y.at(v)
			at := leftEdge + step*(float64(n)+0.1) + wide*float64(i)
			d.Bars = append(d.Bars, drawnBar{looks[i].Color, roundTenth(at), roundTenth(min(from, to)), roundTenth(wide), roundTenth(math.Abs(to - from))})
		}
	}
	d.TicksX = p.namedTicks(func(n int) float64 { return leftEdge + step*(float64(n)+0.5) })
}

// scaleX returns the position of each value of x, and the ticks of its axis. Numbers are placed by their values; names
// are placed at equal distances.
func (p *plot) scaleX() (func(n int) float64, []tick) {
	values := make([]float64, len(p.X))
	for i, x := range p.X {
		v, ok := number(x)
		if !ok {
			step := float64(rightEdge-leftEdge) / float64(max(1, len(p.X)-1))
			at := func(n int) float64 { return leftEdge + step*float64(n) }
			return at, p.namedTicks(at)
		}
		values[i] = v
	}
	s := newScale(slices.Min(values), slices.Max(values), leftEdge, rightEdge)
	var ticks []tick
	for _, v := range s.ticks() {
		ticks = append(ticks, tick{s.at(v), shortNumber(v)})
	}
	return func(n int) float64 { return s.at(values[n]) }, ticks
}

// namedTicks returns ticks with the values of x as their texts: as many as there is room for.
func (p *plot) namedTicks(at func(n int) float64) []tick {
	every := (len(p.X) + maxNames - 1) / maxNames
	room := (rightEdge - leftEdge) / min(len(p.X), maxNames) / letterWidth
	var ticks []tick
	for n := 0; n < len(p.X); n += every {
		ticks = append(ticks, tick{roundTenth(at(n)), clip(p.X[n], max(4, room))})
	}
	return ticks
}

// clip returns a text with at most so many letters.
func clip(text string, most int) string {
	if letters := []rune(text); len(letters) > most {
		return string(letters[:most-1]) + "…"
	}
	return text
}

// scaleY returns the scale of the values. Bars begin at 0.
func (p *plot) scaleY(bottom float64) scale {
	least, most := math.Inf(1), math.Inf(-1)
	for _, s := range p.Series {
		least, most = min(least, slices.Min(s.Values)), max(most, slices.Max(s.Values))
	}
	if p.Kind == barPlot {
		least, most = min(least, 0), max(most, 0)
	}
	return newScale(least, most, bottom, topEdge)
}

// A scale maps numbers to places in a drawing.
type scale struct{ least, most, step, from, to float64 }

// newScale returns a scale from least to most, both rounded to a round number of ticks.
func newScale(least, most, from, to float64) scale {
	if least == most {
		around := max(1, math.Abs(least)/10)
		least, most = least-around, most+around
	}
	step := roundStep((most - least) / 5)
	return scale{math.Floor(least/step) * step, math.Ceil(most/step) * step, step, from, to}
}

// roundStep returns the next larger number that is 1, 2 or 5 times a power of ten.
func roundStep(step float64) float64 {
	power := math.Pow(10, math.Floor(math.Log10(step)))
	for _, times := range []float64{1, 2, 5} {
		if times*power >= step {
			return times * power
		}
	}
	return 10 * power
}

func (s scale) at(v float64) float64 {
	return roundTenth(s.from + (v-s.least)/(s.most-s.least)*(s.to-s.from))
}

func (s scale) ticks() []float64 {
	const most = 12
	var all []float64
	for n := range most {
		v := s.least + float64(n)*s.step
		if v > s.most+s.step/2 {
			break
		}
		if math.Abs(v) < s.step/1000 {
			v = 0
		}
		all = append(all, v)
	}
	return all
}

// shortNumber writes a number for an axis.
func shortNumber(v float64) string {
	for _, unit := range []struct {
		least, size float64
		name        string
	}{{1e9, 1e9, "B"}, {1e6, 1e6, "M"}, {1e4, 1e3, "k"}} {
		if a := math.Abs(v); a >= unit.least && a < 1e12 {
			return strconv.FormatFloat(v/unit.size, 'g', 6, 64) + unit.name
		}
	}
	return strconv.FormatFloat(v, 'g', 6, 64)
}

func roundTenth(v float64) float64 { return math.Round(v*10) / 10 }

// numbers returns the plot's numbers as a table.
func (p *plot) numbers() *table {
	t := &table{Columns: []string{"x"}}
	for _, s := range p.Series {
		t.Columns = append(t.Columns, s.Name)
	}
	for n, x := range p.X {
		row := []string{x}
		for _, s := range p.Series {
			row = append(row, strconv.FormatFloat(s.Values[n], 'g', -1, 64))
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}
