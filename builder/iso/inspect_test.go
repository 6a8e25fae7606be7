package iso_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"testing"

	"github.com/wbox-dev/wbox/builder/iso"
	"github.com/wbox-dev/wbox/builder/iso/isotest"
)

func TestInspect(t *testing.T) {
	standIn := &iso.StandIn{StandIn: true, Version: "1.2", PowerShell: "7.6.9"}
	for _, s := range []*iso.StandIn{nil, standIn} {
		path := isotest.FakeWindowsISO(t, t.TempDir(), isotest.Editions("2022"), s)
		m, err := iso.Inspect(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		want := iso.Media{Path: path, Size: info.Size(), Label: isotest.Label, Editions: isotest.Editions("2022"), StandIn: s}
		if !reflect.DeepEqual(m, want) {
			t.Errorf("got  %+v\nwant %+v", m, want)
		}
	}
}

func TestInspectOtherMedia(t *testing.T) {
	editions := isotest.Editions("2025")
	for name, image := range map[string][]byte{
		"joliet":         seed(t, iso.FromBytes("Sources/Install.wim", isotest.WIM(editions))),
		"esd":            isotest.UDF{Label: "X", Files: []isotest.File{{Path: "sources/install.esd", Data: isotest.WIM(editions)}}}.Bytes(),
		"no stand-in":    isotest.UDF{Label: "X", Files: []isotest.File{{Path: "sources/install.wim", Data: isotest.WIM(editions)}, {Path: iso.StandInFile, Data: []byte("{}")}}}.Bytes(),
		"wim in extents": isotest.UDF{Label: "X", Files: []isotest.File{{Path: "sources/install.wim", Data: isotest.WIM(editions), Pieces: 3}}}.Bytes(),
	} {
		m, err := iso.Inspect(t.Context(), file(t, image))
		if err != nil || !reflect.DeepEqual(m.Editions, editions) || m.StandIn != nil {
			t.Errorf("%s: %+v, %v", name, m, err)
		}
	}
}

// file writes data to a file named as an ISO.
func file(t *testing.T, data []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "media.iso")
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestInspectRefuses(t *testing.T) {
	good := isotest.UDF{Label: "X", Files: []isotest.File{{Path: "sources/install.wim", Data: isotest.WIM(isotest.Editions("2022"))}}}
	image := good.Bytes()
	size := strconv.Itoa(len(image))
	udf := func(files ...isotest.File) []byte { return isotest.UDF{Label: "X", Files: files}.Bytes() }
	split := isotest.WIM(isotest.Editions("2022"))
	split[42] = 2
	unread := append([]byte{}, image...)
	binary.LittleEndian.PutUint32(unread[80+16*2048:], 1) // not told by the ISO 9660 side,
	for _, c := range []struct {
		name  string
		data  []byte
		words []string
	}{
		{"empty", nil, []string{"it is empty", "download it again"}},
		{"html", []byte("<!DOCTYPE html>\n<html><body>Sign in"), []string{"an HTML page", "the server sent a page"}},
		{"text", []byte("Not Found\n"), []string{"a text file", "download it again"}},
		{"zip", []byte("PK\x03\x04\x14\x00\x00\x00"), []string{"a ZIP archive", "give the .iso file itself"}},
		{"zeros", make([]byte, 1<<20), []string{"nothing but zeros", "let the download end"}},
		{"noise", noise(1 << 20), []string{"it is no ISO image;"}},
		{"a little of it", image[:20*2048], []string{"cut off", strconv.Itoa(20 * 2048)}},
		{"half of it", image[:300000], []string{"cut off", "expected " + size + " bytes", "found 300000"}},
		{"less its end", image[:len(image)-4096], []string{"cut off", "found " + strconv.Itoa(len(image)-4096)}},
		{"known by UDF alone", unread[:len(unread)-3*2048], []string{"cut off", "expected " + strconv.Itoa(len(image)-2048)}},
		{"no install.wim", udf(isotest.File{Path: "setup.exe", Data: []byte("MZ")}), []string{"neither sources/install.wim", "not one of drivers"}},
		{"a seed", seed(t, iso.FromBytes("Autounattend.xml", nil)), []string{"neither sources/install.wim"}},
		{"swm", udf(isotest.File{Path: "sources/install.swm", Data: []byte("MSWIM")}), []string{"split into several parts"}},
		{"split wim", udf(isotest.File{Path: "sources/install.wim", Data: split}), []string{"split into several parts", "1 of 2"}},
		{"damaged wim", udf(isotest.File{Path: "sources/install.wim", Data: noise(9000)}), []string{"sources/install.wim is damaged", "compare its SHA-256"}},
		{"wim is a folder", udf(isotest.File{Path: "sources/install.wim/x"}), []string{"sources/install.wim is a folder"}},
		{"damaged stand-in", udf(isotest.File{Path: iso.StandInFile, Data: []byte("{")}), []string{iso.StandInFile}},
		{"damaged UDF", bytes.Replace(image, []byte{2, 0, 2, 0}, []byte{9, 9, 9, 9}, -1), []string{"can't be read as an ISO image", "anchor"}},
	} {
		path := file(t, c.data)
		_, err := iso.Inspect(t.Context(), path)
		checkProblem(t, c.name, err, path, c.words...)
	}
}

func TestInspectRefusesPaths(t *testing.T) {
	dir := t.TempDir()
	_, err := iso.Inspect(t.Context(), dir)
	checkProblem(t, "folder", err, dir, "it is a folder")
	missing := filepath.Join(dir, "none.iso")
	_, err = iso.Inspect(t.Context(), missing)
	checkProblem(t, "missing", err, missing, "there is no such file")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := iso.Inspect(ctx, missing); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}
