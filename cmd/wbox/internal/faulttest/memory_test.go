//go:build linux

package faulttest

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/wbox-dev/wbox/builder/iso"
	"github.com/wbox-dev/wbox/builder/iso/isotest"
	"github.com/wbox-dev/wbox/builder/kube/kubetest"
)

// mostMemory is the promise: what wbox itself uses at most, beside the disks and
// without its children (QEMU, qemu-img, the go command).
const mostMemory = 150 * mib

// BenchmarkMemory is a whole build (payload, overlays, flattening, packing,
// hashing, catalog) of a 32 GiB disk with 3 GiB of data on it (WBOX_BENCH_DATA_MIB: other sizes).
// Its metric is the peak of wbox's resident memory. Figures: builder/BENCHMARKS.md.
func BenchmarkMemory(b *testing.B) {
	for _, tool := range []string{"qemu-img", "go"} {
		if _, err := exec.LookPath(tool); err != nil {
			b.Skipf("%s is not installed", tool)
		}
	}
	size := int64(3 << 10)
	if text := os.Getenv("WBOX_BENCH_DATA_MIB"); text != "" {
		var err error
		if size, err = strconv.ParseInt(text, 10, 64); err != nil {
			b.Fatal(err)
		}
	}
	dir := b.TempDir()
	layout, medium, exes := filepath.Join(dir, "layout.qcow2"), filepath.Join(dir, "stand-in.iso"), filepath.Join(dir, "exes")
	must := func(err error) {
		b.Helper()
		if err != nil {
			b.Fatal(err)
		}
	}
	must(writeLayout(b.Context(), layout))
	must(fill(b, layout, 16<<30, size*mib)) // away from what the machines write
	must(isotest.WriteFake(medium, isotest.Editions("2022"), &iso.StandIn{StandIn: true, Version: "1"}))
	must(largePrograms(b, exes))
	n := 0
	var peak int64
	for b.Loop() {
		n++
		site := filepath.Join(dir, strconv.Itoa(n))
		cmd := exec.CommandContext(b.Context(), os.Args[0], "build", "--k8s", exes, "--k8s-version", "v1.37.2", "--iso", medium, "--cni", "calico",
			"--disk", strconv.Itoa(diskGiB), "-o", filepath.Join(site, "out"), "--store", filepath.Join(site, "store"))
		cmd.Env = append(os.Environ(), "WBOX_WINE=none", layoutEnv+"="+layout, journalEnv+"="+filepath.Join(dir, "journal"))
		var said bytes.Buffer
		cmd.Stderr = &said
		must(cmd.Start())
		over := make(chan int64)
		stop := make(chan struct{})
		go func() { over <- watch(cmd.Process.Pid, stop) }()
		err := cmd.Wait()
		close(stop)
		peak = max(peak, <-over)
		if err != nil {
			b.Fatalf("%v\n%s", err, said.String())
		}
		boxes, err := filepath.Glob(filepath.Join(site, "out", "*.box"))
		if err != nil || len(boxes) != 1 {
			b.Fatalf("made %v, %v", boxes, err)
		}
		must(os.RemoveAll(site))
	}
	if peak == 0 {
		b.Fatal("nothing was measured")
	}
	b.ReportMetric(float64(peak)/float64(mib), "peak-MiB")
	if peak > mostMemory {
		b.Errorf("wbox used %d MiB, more than %d", peak/mib, mostMemory/mib)
	}
}

// watch returns the peak of a process's resident memory in bytes. The kernel
// keeps the peak, so that it doesn't matter how often one looks.
func watch(pid int, stop <-chan struct{}) int64 {
	var peak int64
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		if _, rest, ok := strings.Cut(string(status), "\nVmHWM:"); ok && err == nil {
			var kib int64
			if _, err := fmt.Sscan(rest, &kib); err == nil {
				peak = max(peak, kib<<10)
			}
		}
		select {
		case <-stop:
			return peak
		case <-tick.C:
		}
	}
}

// fill writes data into a qcow2 image that is half as large when compressed.
func fill(b *testing.B, image string, at, size int64) error {
	raw := image + ".data"
	defer os.Remove(raw)
	f, err := os.Create(raw)
	if err != nil {
		return err
	}
	defer f.Close()
	random := rand.NewChaCha8([32]byte{1})
	for left := size; left > 0; left -= mib {
		if _, err := io.CopyN(f, random, mib/2); err != nil {
			return err
		}
		if _, err := f.WriteString(strings.Repeat("Windows ", int(mib/2/8))); err != nil {
			return err
		}
	}
	if err := f.Close(); err != nil {
		return err
	}
	window := fmt.Sprintf("driver=raw,offset=%d,size=%d,file.driver=qcow2,file.file.driver=file,file.file.filename=%s", at, size, image)
	return program(b.Context(), "qemu-img", "convert", "-q", "-n", "-f", "raw", "--target-image-opts", raw, window)
}

// largePrograms makes programs as large as the machines' payload partition takes.
func largePrograms(b *testing.B, dir string) error {
	if err := kubetest.BuildFixture(b.Context(), dir, "v1.37.2", ""); err != nil {
		return err
	}
	for name, size := range map[string]int64{"kubelet": 24 * mib, "kube-proxy": 16 * mib, "kubeadm": 24 * mib, "kube-log-runner": 3 * mib} {
		if err := os.Truncate(filepath.Join(dir, name+".exe"), size); err != nil {
			return err
		}
	}
	return nil
}
