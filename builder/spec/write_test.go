package spec

import (
	"os"
	"path/filepath"
	"reflect"
	"testing"
)

// What is written is read as what it was, paths as seen from the file.
func TestEncodedIsRead(t *testing.T) {
	s := &Spec{K8s: "./kubernetes", CNI: "calico", Windows: "2022", Edition: "core", Containerd: "./containerd", Preload: []string{"./images/pause.tar", "pause"},
		Providers: []string{"libvirt"}, Name: "me/box", Revision: 3, DiskGiB: 40, CPUs: 7, Output: "/elsewhere", Proxy: "http://u:p@example.com"}
	data, err := s.Encode("what it is", "k8s", "cni", "windows", "edition", "containerd", "preload", "providers", "name", "revision", "diskGiB", "iso")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	file := filepath.Join(dir, DefaultFile)
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := Load(Layer{}, file, "")
	if err != nil {
		t.Fatalf("%v\n%s", err, data)
	}
	want := *s
	want.K8s, want.Containerd, want.Preload = filepath.Join(dir, "kubernetes"), filepath.Join(dir, "containerd"), []string{filepath.Join(dir, "images", "pause.tar"), "pause"}
	want.CPUs, want.Output, want.Proxy = 0, "", ""
	got.origins = nil
	if !reflect.DeepEqual(got, &want) {
		t.Errorf("got  %+v\nwant %+v\n%s", got, &want, data)
	}
}
