// Evaluates every query of a Grafana dashboard with Prometheus' own engine over scrapes of /metrics.
//
//	promql DASHBOARD SCRAPE...
//
// A scrape is a file in the text format that is named for its second, such as 1772373720.prom. The exit code is 1 if
// the engine refuses a query, or one finds no series at the instant of the last scrape.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/tsdb/chunks"
	"github.com/prometheus/prometheus/util/annotations"
)

// Grafana puts these in before it asks Prometheus; $group is what "All" stands for.
var variables = strings.NewReplacer("$__rate_interval", "1m", "$group", ".*")

type dashboard struct {
	Panels []struct {
		Title   string
		Targets []struct{ Expr string }
	}
}

// A point is one value of a series; none is a histogram.
type point struct {
	at    int64
	value float64
}

func (p point) T() int64                      { return p.at }
func (p point) ST() int64                     { return 0 }
func (p point) F() float64                    { return p.value }
func (p point) H() *histogram.Histogram       { return nil }
func (p point) FH() *histogram.FloatHistogram { return nil }
func (p point) Type() chunkenc.ValueType      { return chunkenc.ValFloat }
func (p point) Copy() chunks.Sample           { return p }

type series struct {
	labels labels.Labels
	points []chunks.Sample
}

// scrapes are series in the order of their first appearance.
type scrapes struct {
	all  []*series
	byID map[string]*series
}

func (s *scrapes) read(path string) (time.Time, error) {
	name := strings.TrimSuffix(filepath.Base(path), ".prom")
	seconds, err := strconv.ParseInt(name, 10, 64)
	if err != nil {
		return time.Time{}, fmt.Errorf("%s: expected a name such as 1772373720.prom", path)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return time.Time{}, err
	}
	parser := textparse.NewPromParser(text, labels.NewSymbolTable(), false)
	for {
		entry, err := parser.Next()
		if errors.Is(err, io.EOF) {
			return time.Unix(seconds, 0), nil
		}
		if err != nil {
			return time.Time{}, fmt.Errorf("%s: %w", path, err)
		}
		if entry == textparse.EntrySeries {
			_, _, value := parser.Series()
			var who labels.Labels
			parser.Labels(&who)
			s.add(who, point{seconds * 1000, value})
		}
	}
}

func (s *scrapes) add(who labels.Labels, value point) {
	known, ok := s.byID[who.String()]
	if !ok {
		known = &series{labels: who}
		s.byID[who.String()] = known
		s.all = append(s.all, known)
	}
	known.points = append(known.points, value)
}

func (s *scrapes) find(matchers []*labels.Matcher) storage.SeriesSet {
	found := &seriesSet{at: -1}
	for _, each := range s.all {
		fits := true
		for _, matcher := range matchers {
			fits = fits && matcher.Matches(each.labels.Get(matcher.Name))
		}
		if fits {
			found.series = append(found.series, storage.NewListSeries(each.labels, each.points))
		}
	}
	return found
}

type seriesSet struct {
	series []storage.Series
	at     int
}

func (s *seriesSet) Next() bool                        { s.at++; return s.at < len(s.series) }
func (s *seriesSet) At() storage.Series                { return s.series[s.at] }
func (s *seriesSet) Err() error                        { return nil }
func (s *seriesSet) Warnings() annotations.Annotations { return nil }

func main() {
	failures, err := run(os.Args[1], os.Args[2:])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	if failures > 0 {
		os.Exit(1)
	}
}

// run prints a line for each query, and returns how many of them failed.
func run(path string, files []string) (int, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	var board dashboard
	if err := json.Unmarshal(text, &board); err != nil {
		return 0, fmt.Errorf("%s: %w", path, err)
	}
	known := &scrapes{byID: map[string]*series{}}
	var last time.Time
	for _, file := range files {
		if last, err = known.read(file); err != nil {
			return 0, err
		}
	}
	engine := promql.NewEngine(promql.EngineOpts{MaxSamples: 1_000_000, Timeout: time.Minute})
	source := &storage.MockQueryable{MockQuerier: &storage.MockQuerier{
		SelectMockFunction: func(_ bool, _ *storage.SelectHints, matchers ...*labels.Matcher) storage.SeriesSet {
			return known.find(matchers)
		},
	}}
	failures := 0
	for _, panel := range board.Panels {
		for _, target := range panel.Targets {
			said, ok := ask(engine, source, variables.Replace(target.Expr), last)
			fmt.Printf("%-28s %s\n", panel.Title, said)
			if !ok {
				failures++
			}
		}
	}
	return failures, nil
}

func ask(engine *promql.Engine, source storage.Queryable, expression string, at time.Time) (string, bool) {
	query, err := engine.NewInstantQuery(context.Background(), source, nil, expression, at)
	if err != nil {
		return "refused: " + err.Error(), false
	}
	defer query.Close()
	result := query.Exec(context.Background())
	if result.Err != nil {
		return "failed: " + result.Err.Error(), false
	}
	if len(result.Warnings) > 0 {
		return "warned: " + result.Warnings.AsErrors()[0].Error(), false
	}
	found, err := result.Vector()
	if err != nil || len(found) == 0 {
		return "found nothing: " + expression, false
	}
	values := make([]string, 0, 3)
	for _, each := range found[:min(3, len(found))] {
		values = append(values, strconv.FormatFloat(each.F, 'g', 4, 64))
	}
	return fmt.Sprintf("%d series: %s", len(found), strings.Join(values, ", ")), true
}
