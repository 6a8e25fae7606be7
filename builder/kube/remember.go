package kube

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/wbox-dev/wbox/builder/internal/atomicfile"
)

// pinnedFile is where it is kept what one published version was pinned to: its
// files never change, so that who must not use the network can go by it.
func (s *bucketSource) pinnedFile(version string) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%v\x00%s", s.base(version), s.opts.Linux, s.opts.ControlPlane))
	return filepath.Join(s.opts.CacheDir, "pinned", hex.EncodeToString(sum[:12])+".json")
}

// remember keeps what a version was pinned to.
func (s *bucketSource) remember(ctx context.Context, ref Ref) error {
	data, err := json.Marshal(ref)
	if err != nil {
		return fmt.Errorf("keeping the digests of %s: %w", ref.Version, err)
	}
	path := s.pinnedFile(ref.Version)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("keeping the digests of %s: %w", ref.Version, err)
	}
	if err := atomicfile.Write(ctx, path, data, 0o644); err != nil {
		return fmt.Errorf("keeping the digests of %s: %w", ref.Version, err)
	}
	return nil
}

// remembered returns what a version was pinned to, if that is known here.
func (s *bucketSource) remembered(version string) (Ref, bool) {
	data, err := os.ReadFile(s.pinnedFile(version))
	if err != nil {
		return Ref{}, false
	}
	var ref Ref
	if err := json.Unmarshal(data, &ref); err != nil || ref.Version != version || len(ref.Inputs) == 0 {
		return Ref{}, false
	}
	return ref, true
}
