"""The leaderboard as a page: static files that need no server, no network and no other host."""
