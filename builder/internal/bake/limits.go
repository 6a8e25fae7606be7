package bake

import "time"

// InstallDeadline is how long Windows Setup may take until the first contact,
// before Patience: on a slow disk it takes half an hour.
const InstallDeadline = 90 * time.Minute

// Limits bound the waits of a bake, before Patience. What is zero is the default.
type Limits struct {
	Boot   time.Duration // until a guest that was started can be talked to, and again until it is quiet; 15 min
	Reboot time.Duration // from the request to a guest that is back and quiet; 30 min, of which a feature's installation takes twenty
	Script time.Duration // of one run of a guest script; 30 min
	Stop   time.Duration // until a guest that is to turn off has; 10 min
	Quiet  time.Duration // how long a machine may show no sign of life before it is given up; 10 min
	Gather time.Duration // for the logs of a guest that failed, without Patience; 30 s
}

func (h Host) limits() Limits {
	l := h.Limits
	for _, d := range []struct {
		value    *time.Duration
		fallback time.Duration
	}{{&l.Boot, 15 * time.Minute}, {&l.Reboot, 30 * time.Minute}, {&l.Script, 30 * time.Minute},
		{&l.Stop, 10 * time.Minute}, {&l.Quiet, 10 * time.Minute}, {&l.Gather, 30 * time.Second}} {
		if *d.value == 0 {
			*d.value = d.fallback
		}
	}
	return l
}

func (h Host) deadline(d time.Duration) time.Duration { return d * time.Duration(max(1, h.Patience)) }
