"""Settings of the three modes: embedded (one machine), production (containers), test."""
