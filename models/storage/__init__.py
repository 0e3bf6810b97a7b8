"""Storage by itself: tariffs of bandwidth, and what to cache and to buy for jobs at given GPU counts (CBA)."""
