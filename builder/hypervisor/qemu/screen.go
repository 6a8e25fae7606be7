package qemu

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"image"
	"image/png"
	"io"
	"os"
	"path/filepath"

	"github.com/wbox-dev/wbox/builder/internal/atomicfile"
)

// maxScreen bounds either side of a screen, in pixels.
const maxScreen = 16384

// Screenshot writes a PNG of the guest's screen to path, which it replaces.
// QEMU itself writes PNG only since 7.1 and only if built so, but PPM always.
func (m *Machine) Screenshot(ctx context.Context, path string) error {
	dir, err := os.MkdirTemp(m.cfg.Dir, atomicfile.TempPrefix+"screen-")
	if err != nil {
		return fmt.Errorf("taking a screenshot: %w", err)
	}
	defer os.RemoveAll(dir)
	ppm := filepath.Join(dir, "screen.ppm")
	if err := m.ask(ctx, "screendump", map[string]any{"filename": ppm}, nil); err != nil {
		return fmt.Errorf("taking a screenshot: %w", err)
	}
	f, err := os.Open(ppm)
	if err != nil {
		return fmt.Errorf("taking a screenshot: %w", err)
	}
	defer f.Close()
	img, err := decodePPM(f)
	if err != nil {
		return fmt.Errorf("taking a screenshot: %w", err)
	}
	return atomicfile.Func(ctx, path, 0o644, func(w io.Writer) error { return png.Encode(w, img) })
}

// decodePPM reads a binary portable pixmap of 8 bits a colour, without comments,
// which is what QEMU writes (netpbm's ppm(5), magic number P6).
func decodePPM(r io.Reader) (image.Image, error) {
	in := bufio.NewReader(r)
	var width, height, depth int
	var end [1]byte
	if _, err := fmt.Fscanf(in, "P6\n%d %d\n%d", &width, &height, &depth); err != nil {
		return nil, fmt.Errorf("reading a pixmap's header: %w", err)
	}
	if _, err := io.ReadFull(in, end[:]); err != nil {
		return nil, fmt.Errorf("reading a pixmap's header: %w", err)
	}
	if width < 1 || height < 1 || width > maxScreen || height > maxScreen || depth != 255 {
		return nil, fmt.Errorf("reading a pixmap: %dx%d with %d shades is not a screen", width, height, depth)
	}
	// The size is believed as far as there are rows for it: a short file takes
	// no more memory than it has content.
	var pix []byte
	row := make([]byte, 3*width)
	for y := range height {
		if _, err := io.ReadFull(in, row); err != nil {
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return nil, fmt.Errorf("reading row %d of %d of a pixmap: %w", y+1, height, err)
		}
		for x := 0; x < len(row); x += 3 {
			pix = append(pix, row[x], row[x+1], row[x+2], 0xff)
		}
	}
	return &image.RGBA{Pix: pix, Stride: 4 * width, Rect: image.Rect(0, 0, width, height)}, nil
}

// SendKeys presses keys in turn, each by QEMU's name for it ("ret", "f8", "y").
func (m *Machine) SendKeys(ctx context.Context, keys ...string) error {
	for _, key := range keys {
		pressed := []map[string]string{{"type": "qcode", "data": key}}
		if err := m.ask(ctx, "send-key", map[string]any{"keys": pressed}, nil); err != nil {
			return fmt.Errorf("pressing the key %q: %w", key, err)
		}
	}
	return nil
}
