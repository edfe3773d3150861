"""What the scheduler does in a cycle, one module per action, and the parts they share.

An action walks gangs in order, tries changes in a statement and commits or takes them back. Rules decide
what fits; here is only the sequence. Mirrors pkg/scheduler/actions (KAI d5bc503a).
"""
