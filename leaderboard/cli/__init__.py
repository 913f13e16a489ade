"""The commands of the leaderboard, each in a module that is imported only when it runs."""
