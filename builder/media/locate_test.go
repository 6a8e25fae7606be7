package media

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/wbox-dev/wbox/builder/fault"
	"github.com/wbox-dev/wbox/builder/iso"
	"github.com/wbox-dev/wbox/builder/report"
)

var core2022 = Want{Release: "2022", Kind: iso.Core}

func TestLocateFile(t *testing.T) {
	s := serve(t)
	l := open(t, Options{Table: s.table(t), BaseURL: s.URL, Licence: yes})
	path, digest := fakeISO(t, "2022", 9, nil)
	w := core2022
	w.ISO = path
	f, p, err := l.Locate(t.Context(), w)
	if err != nil || p != nil || f.Digest != digest || f.Edition.Name != "Windows Server 2022 SERVERDATACENTERCORE" || f.Media.Path != path {
		t.Fatalf("%+v %v %v", f, p, err)
	}
	w.ISO = path + ".missing" // nothing is taken in its place
	if _, err := l.Add(t.Context(), path, ""); err != nil {
		t.Fatal(err)
	}
	_, _, err = l.Locate(t.Context(), w)
	want(t, err, fault.Input, "--iso", "there is no such file")
	w.ISO, w.Release = path, "2025"
	_, _, err = l.Locate(t.Context(), w)
	want(t, err, fault.Input, "no Windows Server 2025 core edition")
	if s.requests != 0 {
		t.Errorf("%d requests", s.requests)
	}
}

// TestLocateInStore picks the newest that fits, never a stand-in.
func TestLocateInStore(t *testing.T) {
	s := serve(t)
	l := open(t, Options{Table: s.table(t), Offline: true})
	digests := map[int]string{}
	for _, sp := range []int{9, 100, 20} {
		path, digest := fakeISO(t, "2022", sp, nil)
		digests[sp] = digest
		if _, err := l.Add(t.Context(), path, ""); err != nil {
			t.Fatal(err)
		}
	}
	newest, _ := fakeISO(t, "2022", 999, &iso.StandIn{StandIn: true, Version: "1"})
	if _, err := l.Add(t.Context(), newest, ""); err != nil {
		t.Fatal(err)
	}
	f, p, err := l.Locate(t.Context(), core2022)
	if err != nil || p != nil || f.Digest != digests[100] || !strings.HasSuffix(f.Media.Path, strings.TrimPrefix(f.Digest, "sha256:")) {
		t.Fatalf("%+v %v %v", f, p, err)
	}
	w := core2022
	w.Digest = digests[9] // a lock pins it
	if f, _, err := l.Locate(t.Context(), w); err != nil || f.Digest != digests[9] {
		t.Errorf("%+v %v", f, err)
	}
	_, _, err = l.Locate(t.Context(), Want{Release: "2025", Kind: iso.Core})
	want(t, err, fault.Input, "no Windows Server 2025 core medium is in the store, and w2025 is not in the store, and --offline forbids", "https://example.org/w2025", "wbox iso add FILE")
	_, _, err = l.Locate(t.Context(), Want{Release: "2019", Kind: iso.Desktop})
	want(t, err, fault.Input, "no Windows Server 2019 desktop medium is in the store; get an ISO and run: wbox iso add FILE")
}

func TestLocateInTable(t *testing.T) {
	s := serve(t)
	table := s.table(t)
	l := open(t, Options{Table: table, BaseURL: s.URL})
	_, _, err := l.Locate(t.Context(), core2022)
	want(t, err, fault.Input, "--iso: no Windows Server 2022 core medium is in the store, and w2022 is downloaded only once its licence is accepted",
		"--accept-eula", Bytes(table[0].Size), "https://example.org/w2022", "wbox iso add FILE")

	asked := 0
	l.opts.Asks = true
	l.opts.Licence = func(context.Context, Entry) (string, error) { asked++; return "in a terminal", nil }
	f, p, err := l.Locate(t.Context(), Want{Release: "2025", Kind: iso.Desktop})
	if err != nil || f != nil || p.Name != "w2025" || p.Size != table[2].Size || asked != 0 || s.requests != 0 {
		t.Fatalf("%+v %+v %v, asked %d times, %d requests", f, p, err, asked, s.requests)
	}
	want(t, p.Problem(), fault.Input, "a build downloads w2025", "wbox iso fetch w2025", "wbox iso add FILE")
	got, err := p.Get(t.Context())
	if err != nil || got.Digest != table[2].Digest() || got.Edition.Kind() != iso.Desktop || asked != 1 {
		t.Fatalf("%+v %v, asked %d times", got, err, asked)
	}
	if f, p, err := l.Locate(t.Context(), Want{Release: "2025", Kind: iso.Core}); err != nil || p != nil || f.Digest != got.Digest {
		t.Errorf("%+v %+v %v", f, p, err)
	}
	// What a lock pins is fetched although something newer is there.
	_, p, err = l.Locate(t.Context(), Want{Release: "2025", Kind: iso.Core, Digest: table[1].Digest()})
	if err != nil || p == nil || p.Name != "w2025-old" {
		t.Errorf("%+v %v", p, err)
	}
	// A pin of another release is no help.
	if f, _, err := l.Locate(t.Context(), Want{Release: "2025", Kind: iso.Core, Digest: table[0].Digest()}); err != nil || f == nil || f.Digest != table[2].Digest() {
		t.Errorf("%+v %v", f, err)
	}
	l.opts.BaseURL = "nonsense"
	_, _, err = l.Locate(t.Context(), core2022)
	want(t, err, fault.Usage, "--iso-base-url nonsense")
}

func TestLocateURL(t *testing.T) {
	s := serve(t)
	path, digest := fakeISO(t, "2022", 3, nil)
	s.files["/a b.iso"] = path
	var warnings []string
	l := open(t, Options{Table: s.table(t), Sink: report.SinkFunc(func(e report.Event) {
		if e.Kind == report.Warning {
			warnings = append(warnings, e.Message)
		}
	})})
	w := core2022
	w.ISO = s.URL + "/a%20b.iso?key=SECRET"
	_, p, err := l.Locate(t.Context(), w)
	if err != nil || p == nil || strings.Contains(p.Name, "SECRET") || s.requests != 0 {
		t.Fatalf("%+v %v", p, err)
	}
	got, err := p.Get(t.Context())
	if err != nil || got.Digest != digest || len(warnings) != 1 || strings.Contains(got.Source, "SECRET") {
		t.Fatalf("%+v %v, warnings %q", got, err, warnings)
	}
	// It is trusted once: the same URL is what is in the store from now on.
	s.files["/a b.iso"], _ = fakeISO(t, "2022", 4, nil)
	f, _, err := l.Locate(t.Context(), w)
	if err != nil || f == nil || f.Digest != digest || s.requests != 1 {
		t.Fatalf("%+v %v, %d requests", f, err, s.requests)
	}
	// A pin in the URL, or of a lock, is found in the store, whatever the URL.
	for _, w := range []Want{{ISO: "https://nowhere.invalid/x.iso#sha256=" + strings.ToUpper(strings.TrimPrefix(digest, "sha256:"))}, {ISO: "https://nowhere.invalid/x.iso", Digest: digest}} {
		w.Release, w.Kind = "2022", iso.Core
		if f, _, err := l.Locate(t.Context(), w); err != nil || f == nil || f.Digest != digest {
			t.Errorf("%+v %v", f, err)
		}
	}
	secrets, _ := filepath.Glob(filepath.Join(l.dir("media"), "*.json"))
	for _, f := range secrets {
		if b, err := os.ReadFile(f); err != nil || strings.Contains(string(b), "SECRET") {
			t.Errorf("%s: %s %v", f, b, err)
		}
	}
}

func TestLocateURLRefuses(t *testing.T) {
	s := serve(t)
	page := filepath.Join(t.TempDir(), "x.bin")
	if err := os.WriteFile(page, []byte(strings.Repeat("no ISO ", 1000)), 0o644); err != nil {
		t.Fatal(err)
	}
	s.files["/x.iso"] = page
	l := open(t, Options{})
	w := core2022
	for in, text := range map[string]string{
		"ftp://h/x.iso": "is no http or https URL", "file:///x.iso": "is no http or https URL", "https:///x.iso": "is no http or https URL",
		"https://h/x.iso#sha256=12": "pins nothing", "https://h/x.iso#md5=12": "pins nothing",
	} {
		w.ISO = in
		_, _, err := l.Locate(t.Context(), w)
		want(t, err, fault.Usage, "--iso", text)
	}
	w.ISO = s.URL + "/x.iso"
	_, p, err := l.Locate(t.Context(), w)
	if err != nil {
		t.Fatal(err)
	}
	_, err = p.Get(t.Context())
	want(t, err, fault.Input, "--iso", "it is no ISO image")
	if items, err := l.Items(); len(items) != 0 || err != nil {
		t.Errorf("in the store: %v %v", items, err)
	}
	l.opts.Offline = true
	_, _, err = l.Locate(t.Context(), w)
	want(t, err, fault.Input, "--offline forbids")
}
