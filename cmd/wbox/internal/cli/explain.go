package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/wbox-dev/wbox/builder"
	"github.com/wbox-dev/wbox/builder/fault"
	"github.com/wbox-dev/wbox/builder/report"
	"github.com/wbox-dev/wbox/cmd/wbox/internal/ui"
)

// explained is what --explain adds to a plan's JSON form, beside "explain" of
// each stage.
type explained struct {
	Medium   string             `json:"-"` // told by planned
	Total    builder.Cost       `json:"total"`
	Disk     []builder.Need     `json:"disk"`
	Memory   builder.MemoryNeed `json:"memory"`
	Problems []string           `json:"problems"` // for which a build would be refused
}

func explainPlan(ctx context.Context, b *builder.Builder, r *builder.Resolved) ([]builder.PlanLine, *explained, error) {
	x, err := b.Explain(ctx, r)
	if err != nil {
		return nil, nil, err
	}
	medium, _ := r.Pending()
	out := &explained{Medium: medium, Total: x.Total, Disk: x.Disk, Memory: x.Memory, Problems: []string{}}
	for _, p := range fault.All(x.Check()) {
		out.Problems = append(out.Problems, p.Error())
	}
	return x.Stages, out, nil
}

// explainText says why a stage would run and what that takes, indented.
func explainText(x *builder.StageExplained) string {
	if len(x.Reasons) == 0 {
		return ""
	}
	var b strings.Builder
	for i, reason := range x.Reasons {
		label := "why:"
		if i > 0 {
			label = ""
		}
		fmt.Fprintf(&b, "    %-6s %s\n", label, reason)
	}
	if !x.Made.IsZero() {
		fmt.Fprintf(&b, "    %-6s compared with %s, made %s\n", "", builder.ShortDigest(x.Nearest), x.Made.Local().Format("2006-01-02 15:04"))
	}
	download := ""
	if x.Cost.Download > 0 {
		download = "download: " + report.Bytes(x.Cost.Download) + "; "
	}
	fmt.Fprintf(&b, "    %-6s %sdisk: %s; time: %s\n", "takes:", download, diskText(x.Cost), timeText(x.Cost))
	return b.String()
}

func diskText(c builder.Cost) string {
	s := fmt.Sprintf("%s at the peak, %s kept", report.Bytes(c.DiskPeak), report.Bytes(c.DiskKept))
	if c.DiskMeasured {
		return s
	}
	return "about " + s + " (guessed)"
}

func timeText(c builder.Cost) string {
	took := ui.Elapsed(time.Duration(c.Seconds * float64(time.Second)))
	switch {
	case c.TimeMeasured && c.Samples == 1:
		return took + " when it was made here"
	case c.TimeMeasured && c.Samples > 1:
		return fmt.Sprintf("%s (median of %d made here)", took, c.Samples)
	}
	return "not measured here"
}

// printTotal prints what a whole build takes.
func (a *app) printTotal(x *explained) {
	if x.Total.DiskPeak == 0 && x.Total.Seconds == 0 && x.Memory.Bytes == 0 {
		fmt.Fprintln(a.out, "total: nothing to do")
		return
	}
	fmt.Fprintln(a.out, "total:")
	download := report.Bytes(x.Total.Download)
	if x.Medium != "" && x.Total.Download == 0 {
		download = "of unknown size"
	}
	fmt.Fprintf(a.out, "    download  %s\n", download)
	fmt.Fprintf(a.out, "    disk      %s\n", diskText(x.Total))
	for _, n := range x.Disk {
		fmt.Fprintf(a.out, "              %s in %s (%s%s)\n", report.Bytes(n.Bytes), n.Folder, n.Flag, free(n.Free))
	}
	if x.Memory.Bytes > 0 {
		fmt.Fprintf(a.out, "    memory    %s%s\n", report.Bytes(x.Memory.Bytes), free(x.Memory.Available))
	}
	fmt.Fprintf(a.out, "    time      %s\n", totalTime(x.Total))
	for _, p := range x.Problems {
		fmt.Fprintf(a.out, "a build would be refused: %s\n", p)
	}
}

func free(n int64) string {
	if n == 0 {
		return ""
	}
	return ", " + report.Bytes(n) + " free"
}

func totalTime(c builder.Cost) string {
	took := "about " + ui.Elapsed(time.Duration(c.Seconds*float64(time.Second)))
	switch {
	case c.TimeMeasured:
		return took
	case c.Seconds > 0:
		return took + ", and what was not measured here"
	}
	return "not measured here"
}
