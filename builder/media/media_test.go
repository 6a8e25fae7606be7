package media

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/wbox-dev/wbox/builder/fault"
	"github.com/wbox-dev/wbox/builder/internal/cas"
	"github.com/wbox-dev/wbox/builder/iso"
	"github.com/wbox-dev/wbox/builder/iso/isotest"
	"github.com/wbox-dev/wbox/builder/report"
)

// fakeISO writes an ISO of a release, with the update level sp, and returns
// path and digest.
func fakeISO(t *testing.T, release string, sp int, standIn *iso.StandIn) (path, digest string) {
	t.Helper()
	editions := isotest.Editions(release)
	for i := range editions {
		editions[i].SPBuild = sp
	}
	path = filepath.Join(t.TempDir(), "SERVER_"+release+" ü.iso")
	if err := isotest.WriteFake(path, editions, standIn); err != nil {
		t.Fatal(err)
	}
	digest, _, err := cas.DigestFile(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	return path, digest
}

// server serves files by their path, and counts requests.
type server struct {
	*httptest.Server
	files    map[string]string // path of the URL -> file
	requests int
}

func serve(t *testing.T) *server {
	s := &server{files: map[string]string{}}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.requests++
		f, ok := s.files[r.URL.Path]
		if !ok {
			http.NotFound(w, r)
			return
		}
		http.ServeFile(w, r, f)
	}))
	t.Cleanup(s.Close)
	return s
}

// table is a table of media that the server has.
func (s *server) table(t *testing.T) []Entry {
	t.Helper()
	var out []Entry
	for _, e := range []struct {
		name, release, version string
		sp                     int
	}{{"w2022", "2022", "10.0.20348.587", 587}, {"w2025-old", "2025", "10.0.26100.1742", 1742}, {"w2025", "2025", "10.0.26100.32230", 32230}} {
		path, digest := fakeISO(t, e.release, e.sp, nil)
		fi, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		s.files["/"+e.name+".iso"] = path
		out = append(out, Entry{Name: e.name, Release: e.release, Version: e.version, Editions: []string{"core", "desktop"}, SHA256: strings.TrimPrefix(digest, "sha256:"),
			Size: fi.Size(), Path: "/" + e.name + ".iso", Page: "https://example.org/" + e.name, Licence: "an evaluation licence"})
	}
	return out
}

func open(t *testing.T, o Options) *Library {
	t.Helper()
	l, err := Open(filepath.Join(t.TempDir(), "store"), o)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func yes(context.Context, Entry) (string, error) { return "--accept-eula", nil }

func want(t *testing.T, err error, class fault.Class, texts ...string) {
	t.Helper()
	if fault.ClassOf(err) != class {
		t.Errorf("class %d of %v, want %d", fault.ClassOf(err), err, class)
		return
	}
	for _, text := range texts {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("error %q lacks %q", err, text)
		}
	}
}

func TestTable(t *testing.T) {
	table, err := Table()
	if err != nil || len(table) < 4 {
		t.Fatal(len(table), err)
	}
	seen := map[string]bool{}
	first := map[string]Entry{}
	for _, e := range table {
		if seen[e.Name] || seen[e.SHA256] {
			t.Errorf("%s is there twice", e.Name)
		}
		seen[e.Name], seen[e.SHA256] = true, true
		if !regexp.MustCompile(`^[0-9a-f]{64}$`).MatchString(e.SHA256) || !regexp.MustCompile(`^10\.0\.\d{5}\.\d+$`).MatchString(e.Version) {
			t.Errorf("%s: digest %q, version %q", e.Name, e.SHA256, e.Version)
		}
		build := map[string]string{"2019": "17763", "2022": "20348", "2025": "26100"}[e.Release]
		if build == "" || !strings.Contains(e.Version, "."+build+".") {
			t.Errorf("%s: release %s and version %s don't agree", e.Name, e.Release, e.Version)
		}
		if e.Path != "" && (!strings.HasPrefix(e.Path, "/") || !strings.HasSuffix(e.Path, ".iso")) || e.Size != 0 && e.Size < 4e9 ||
			!strings.HasPrefix(e.Page, "https://www.microsoft.com/") || e.Licence == "" || e.Source == "" || len(e.Editions) == 0 || e.Language == "" {
			t.Errorf("%+v", e)
		}
		if f, ok := first[e.Release]; ok && newer(e.Version, f.Version) {
			t.Errorf("%s comes after %s, which is older", e.Name, f.Name)
		} else if !ok {
			first[e.Release] = e
		}
	}
	if e := first["2022"]; e.Size == 0 || e.Path == "" {
		t.Errorf("the default medium can't be fetched: %+v", e)
	}
}

func TestAddAndItems(t *testing.T) {
	s := serve(t)
	table := s.table(t)
	l := open(t, Options{Table: table})
	known := s.files["/w2022.iso"]
	it, err := l.Add(t.Context(), known, "")
	if err != nil || it.Name != "w2022" || it.Digest != table[0].Digest() || len(it.Media.Editions) != 4 {
		t.Fatalf("%+v %v", it, err)
	}
	other, digest := fakeISO(t, "2019", 1, nil)
	it, err = l.Add(t.Context(), other, "")
	if err != nil || it.Name != "SERVER_2019 ü" || it.Digest != digest {
		t.Fatalf("%+v %v", it, err)
	}
	renamed, err := l.Add(t.Context(), other, "mine")
	if err != nil || renamed.Name != "mine" || !renamed.Added.Equal(it.Added) {
		t.Errorf("%+v %v", renamed, err)
	}
	if again, err := l.Add(t.Context(), other, ""); err != nil || again.Name != "mine" {
		t.Errorf("adding it again lost its name: %+v %v", again, err)
	}
	items, err := l.Items()
	if err != nil || len(items) != 2 || items[0].Name != "mine" || items[1].Name != "w2022" {
		t.Errorf("%+v %v", items, err)
	}
	if s.requests != 0 {
		t.Errorf("%d requests", s.requests)
	}
	page := filepath.Join(t.TempDir(), "page.iso")
	if err := os.WriteFile(page, []byte("<!doctype html>"), 0o644); err != nil {
		t.Fatal(err)
	}
	_, err = l.Add(t.Context(), page, "")
	want(t, err, fault.Input, "wbox iso add "+page, "HTML")
	_, err = l.Add(t.Context(), filepath.Join(t.TempDir(), "missing.iso"), "")
	want(t, err, fault.Input, "wbox iso add ", "there is no such file")
}

func TestList(t *testing.T) {
	s := serve(t)
	l := open(t, Options{Table: s.table(t), BaseURL: s.URL, Licence: yes})
	l.table[1].Path = ""
	if _, err := l.Fetch(t.Context(), "W2022"); err != nil { // names are people's: case is no matter
		t.Fatal(err)
	}
	standIn, _ := fakeISO(t, "2022", 1, &iso.StandIn{StandIn: true, Version: "1"})
	if _, err := l.Add(t.Context(), standIn, "a-stand-in"); err != nil {
		t.Fatal(err)
	}
	rows, err := l.List()
	if err != nil || len(rows) != 4 {
		t.Fatalf("%+v %v", rows, err)
	}
	if r := rows[0]; !r.InStore || r.Accepted == nil || r.URL != s.URL+"/w2022.iso" || r.Path == "" || strings.Join(r.Editions, " ") != "core desktop" || r.Added == nil {
		t.Errorf("%+v", r)
	}
	if r := rows[1]; r.InStore || r.URL != "" || r.Accepted != nil || r.Page == "" {
		t.Errorf("%+v", r)
	}
	if r := rows[3]; !r.StandIn || !r.InStore || r.Name != "a-stand-in" || r.Release != "2022" || r.Version != "10.0.20348.1" {
		t.Errorf("%+v", r)
	}
}

func TestFetch(t *testing.T) {
	s := serve(t)
	table := s.table(t)
	root := filepath.Join(t.TempDir(), "store")
	asked := 0
	ask := func(_ context.Context, e Entry) (string, error) {
		if asked++; asked == 1 {
			return "", nil
		}
		return "in a terminal", nil
	}
	o := Options{Table: table, BaseURL: s.URL + "/", Licence: ask, Asks: true}
	l, err := Open(root, o)
	if err != nil {
		t.Fatal(err)
	}
	_, err = l.Fetch(t.Context(), "w2022")
	want(t, err, fault.Input, "w2022: is downloaded only once its licence is accepted", "https://example.org/w2022", "--accept-eula")
	it, err := l.Fetch(t.Context(), "w2022")
	if err != nil || it.Digest != table[0].Digest() || it.Name != "w2022" || s.requests != 1 || it.Source != s.URL+"/w2022.iso" {
		t.Fatalf("%+v %v, %d requests", it, err, s.requests)
	}
	a, ok := l.Accepted(table[0])
	if !ok || a.How != "in a terminal" || time.Since(a.Accepted) > time.Hour || a.Licence != table[0].Licence {
		t.Errorf("%+v %v", a, ok)
	}
	if _, ok := l.Accepted(table[1]); ok {
		t.Error("one licence was accepted for another")
	}
	if err := l.store.RemoveBlob(it.Digest); err != nil {
		t.Fatal(err)
	}
	o.Licence = nil // accepted before
	if l, err = Open(root, o); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second time it is in the store
		if _, err := l.Fetch(t.Context(), "w2022"); err != nil {
			t.Error(err)
		}
	}
	if s.requests != 2 || asked != 2 {
		t.Errorf("%d requests, asked %d times", s.requests, asked)
	}
	left, err := os.ReadDir(filepath.Join(root, "downloads"))
	if err != nil || len(left) != 0 {
		t.Errorf("left of the downloads: %v %v", left, err)
	}
}

func TestFetchRefuses(t *testing.T) {
	s := serve(t)
	table := s.table(t)
	o := Options{Table: table, BaseURL: s.URL, Licence: yes}
	_, err := open(t, o).Fetch(t.Context(), "w2016")
	want(t, err, fault.Input, "w2016: is not a known medium; use one of w2022, w2025-old, w2025")

	off := o
	off.Offline = true
	_, err = open(t, off).Fetch(t.Context(), "w2022")
	want(t, err, fault.Input, "--offline forbids", "https://example.org/w2022", "wbox iso add FILE")

	for _, base := range []string{"ftp://x", "nowhere", "http://", ":"} {
		bad := o
		bad.BaseURL = base
		_, err = open(t, bad).Fetch(t.Context(), "w2022")
		want(t, err, fault.Usage, "--iso-base-url")
	}
	unknown := o
	unknown.Table = []Entry{table[0]}
	unknown.Table[0].Path = ""
	_, err = open(t, unknown).Fetch(t.Context(), "w2022")
	want(t, err, fault.Input, "no address of it is known", "wbox iso add FILE")
	if s.requests != 0 {
		t.Errorf("%d requests", s.requests)
	}

	table = s.table(t)
	o.Table = table
	delete(s.files, "/w2022.iso")
	_, err = open(t, o).Fetch(t.Context(), "w2022")
	want(t, err, fault.Input, "does not exist on the server (404)", Bytes(table[0].Size), "https://example.org/w2022", "wbox iso add FILE")

	s.files["/w2025.iso"] = s.files["/w2025-old.iso"]
	l := open(t, o)
	_, err = l.Fetch(t.Context(), "w2025")
	want(t, err, fault.Input, "not the pinned")
	if items, err := l.Items(); len(items) != 0 || err != nil {
		t.Errorf("in the store: %v %v", items, err)
	}

	broken := o
	broken.Licence = func(context.Context, Entry) (string, error) { return "", errors.New("no terminal") }
	if _, err := open(t, broken).Fetch(t.Context(), "w2022"); err == nil || !strings.Contains(err.Error(), "no terminal") {
		t.Error(err)
	}
}

// TestFetchAtOnce downloads one medium from two sides: once over the network.
func TestFetchAtOnce(t *testing.T) {
	s := serve(t)
	table := s.table(t)
	root := filepath.Join(t.TempDir(), "store")
	errs := make(chan error, 3)
	for range cap(errs) {
		go func() {
			l, err := Open(root, Options{Table: table, BaseURL: s.URL, Licence: yes})
			if err == nil {
				_, err = l.Fetch(t.Context(), "w2025")
			}
			errs <- err
		}()
	}
	for range cap(errs) {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	if s.requests != 1 {
		t.Errorf("%d requests", s.requests)
	}
}

func TestDamagedRecords(t *testing.T) {
	l := open(t, Options{})
	path, digest := fakeISO(t, "2022", 1, nil)
	if _, err := l.Add(t.Context(), path, "mine"); err != nil {
		t.Fatal(err)
	}
	for _, garbage := range []string{"", "null", `{"digest":"sha256:00"}`} {
		if err := os.WriteFile(l.itemPath(digest), []byte(garbage), 0o644); err != nil {
			t.Fatal(err)
		}
		if items, err := l.Items(); len(items) != 0 || err != nil {
			t.Errorf("%q: %v %v", garbage, items, err)
		}
		if _, err := l.Add(t.Context(), path, "mine"); err != nil {
			t.Errorf("%q: %v", garbage, err)
		}
		if items, err := l.Items(); len(items) != 1 || err != nil {
			t.Errorf("%q, added again: %v %v", garbage, items, err)
		}
	}
	e := Entry{Name: "e", SHA256: strings.Repeat("a", 64)}
	if err := os.MkdirAll(filepath.Dir(l.licencePath(e)), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, garbage := range []string{"", "{}", `{"sha256":"` + e.SHA256 + `"}`} {
		if err := os.WriteFile(l.licencePath(e), []byte(garbage), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, ok := l.Accepted(e); ok {
			t.Errorf("%q passes for an accepted licence", garbage)
		}
	}
}

func TestBytes(t *testing.T) {
	for n, want := range map[int64]string{0: "size unknown", 999: "999 bytes", 1_500_000: "1.5 MB", 5_044_094_976: "5.0 GB"} {
		if got := Bytes(n); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
}

// TestProgress sees the bytes of an ISO that is added.
func TestProgress(t *testing.T) {
	var last report.Event
	l := open(t, Options{Sink: report.SinkFunc(func(e report.Event) { last = e })})
	path, _ := fakeISO(t, "2022", 1, nil)
	it, err := l.Add(t.Context(), path, "")
	if err != nil || last.Done != it.Media.Size || last.Total != it.Media.Size || last.Stage != "iso" {
		t.Errorf("%+v %v", last, err)
	}
}
